"""fleet_mpi/program/build/amp_lists.py."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fluid import layers
from fleet_mpi.program.build.amp_lists import AutoMixedPrecisionLists, mark
from fleet_mpi.program.graph.operator import COMPUTE_DTYPE, HALF, SINGLE
from fleet_mpi.program.graph.program import default_main_program


def marks(lists=None):
    """{op type: its mark, None without one} after marking the default program."""
    block = default_main_program().global_block()
    mark(block, lists or AutoMixedPrecisionLists())
    return {op.type: op.attrs.get(COMPUTE_DTYPE) for op in block.ops}


def network():
    """A white op, a gray one behind it, a black one, a gray one behind that, and one that is on no list."""
    x = layers.data("x", [3])
    hidden = layers.fc(x, 4, act="tanh", bias_attr=False)
    return layers.cumsum(layers.scale(layers.softmax(hidden), 2.0))


def test_gray_ops_follow_what_they_read_and_unlisted_ops_stay_single():
    network()
    assert marks() == {"mul": HALF, "tanh": HALF, "softmax": SINGLE, "scale": SINGLE, "cumsum": SINGLE}


def test_a_gray_op_that_reads_no_marked_op_gets_no_mark():
    layers.relu(layers.data("x", [3]))
    assert marks() == {"relu": None}


def test_one_black_source_outweighs_a_white_one():
    x = layers.data("x", [3])
    layers.elementwise_add(layers.fc(x, 3, bias_attr=False), layers.exp(x))
    assert marks() == {"mul": HALF, "exp": SINGLE, "elementwise_add": SINGLE}


def test_custom_lists_come_before_the_built_in_ones():
    network()
    assert marks(AutoMixedPrecisionLists({"softmax"}, {"tanh"})) == {
        "mul": HALF, "tanh": SINGLE, "softmax": HALF, "scale": HALF, "cumsum": SINGLE}


def test_an_op_that_touches_a_black_variable_is_single():
    network()
    name = default_main_program().global_block().ops[0].output_arg_names[0]
    assert marks(AutoMixedPrecisionLists(custom_black_varnames={name})) == dict.fromkeys(
        ("mul", "tanh", "softmax", "scale", "cumsum"), SINGLE)


def test_an_op_on_both_custom_lists_is_refused():
    with pytest.raises(UsageError, match="'mul'.* on the white and on the black one"):
        AutoMixedPrecisionLists({"mul"}, {"mul", "tanh"})


def test_what_outlives_the_step_stays_single():
    hidden = layers.fc(layers.data("x", [3]), 4, bias_attr=False)
    hidden.persistable = True
    assert marks() == {"mul": SINGLE}


def test_the_averages_of_a_batch_norm_do_not_keep_it_from_float16():
    layers.batch_norm(layers.fc(layers.data("x", [3]), 4, bias_attr=False))
    assert marks() == {"mul": HALF, "batch_norm": HALF}


def test_what_a_branch_reads_stays_single():
    hidden = layers.fc(layers.data("x", [3]), 4, bias_attr=False)
    layers.cond(layers.less_than(layers.fill_constant([1], "float32", 0), layers.fill_constant([1], "float32", 1)),
                lambda: layers.relu(hidden), lambda: layers.tanh(hidden))
    assert marks()["mul"] == SINGLE


def test_an_op_that_names_its_type_keeps_it():
    layers.cast(layers.fc(layers.data("x", [3]), 4, bias_attr=False), "float64")
    assert marks() == {"mul": HALF, "cast": SINGLE}
