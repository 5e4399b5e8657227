"""The few functions of ``fluid`` that are more than a name."""

import io
import logging

from fleet_mpi import fluid


def test_a_variable_is_found_by_name():
    x = fluid.data(name="x", shape=[None, 2])
    assert fluid.framework._get_var("x") is x
    assert fluid.framework._get_var("x", fluid.default_main_program()) is x


def test_a_program_is_written_to_a_file_or_to_stderr(capsys):
    fluid.layers.mean(fluid.data(name="x", shape=[None, 2]))
    text = io.StringIO()
    fluid.transpiler.details.program_to_code(fluid.default_main_program(), fout=text)
    fluid.transpiler.details.program_to_code(fluid.default_main_program())
    told = capsys.readouterr()
    assert told.out == "" and told.err == text.getvalue() and "mean(X=[x])" in told.err


def test_a_logger_writes_its_lines_once(capsys):
    for _ in range(2):
        logger = fluid.log_helper.get_logger("fleet_mpi.tests.fluid", logging.INFO, fmt="<%(message)s>")
    logger.info("here")
    assert capsys.readouterr().err == "<here>\n"


def test_what_a_checkpoint_holds_can_be_listed():
    fluid.layers.fc(fluid.data(name="x", shape=[None, 2]), 1)
    program = fluid.default_main_program()
    assert [param.name for param in fluid.io.get_program_parameter(program)] == ["fc_0.w_0", "fc_0.b_0"]
    assert {var.name for var in fluid.io.get_program_persistable_vars(program)} == {"fc_0.w_0", "fc_0.b_0"}


def test_old_memory_calls_do_nothing():
    before = str(fluid.default_main_program())
    fluid.memory_optimize(fluid.default_main_program())
    fluid.release_memory(fluid.default_main_program())
    assert str(fluid.default_main_program()) == before


def test_the_two_embeddings_differ_in_their_ids():
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64")
    assert fluid.layers.embedding(ids, [5, 3]).shape == (-1, 3)
    assert fluid.embedding(ids, [5, 3]).shape == (-1, 1, 3)


def test_one_hot_differs_the_same_way():
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64")
    assert fluid.layers.one_hot(ids, 4).shape == (-1, 4) and fluid.one_hot(ids, 4).shape == (-1, 1, 4)
