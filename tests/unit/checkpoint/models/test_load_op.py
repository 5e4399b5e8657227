"""fluid.layers.load: a program that reads a variable from a file when it runs."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.checkpoint.formats.tensor_stream import write_tensor
from fleet_mpi.errors import CheckpointDamaged, ProgramError

VALUES = np.arange(6, dtype="float32").reshape(3, 2)


def written(path, array=VALUES, lod=(), times=1):
    with open(path, "wb") as stream:
        for _ in range(times):
            write_tensor(stream, array, lod)
    return str(path)


def loading(path, **more):
    out = fluid.layers.create_tensor(dtype="float32")
    fluid.layers.load(out, path, **more)
    return out


def run(out, **more):
    return fluid.Executor().run(fetch_list=[out], **more)[0]


def test_a_variable_is_read_and_computed_with(tmp_path):
    out = loading(written(tmp_path / "x"))
    assert np.array_equal(run(fluid.layers.scale(out, 2.0)), VALUES * 2)


def test_the_file_is_read_anew_at_every_run(tmp_path):
    out = loading(written(tmp_path / "x"))
    run(out)
    written(tmp_path / "x", VALUES[:1] + 1)
    assert np.array_equal(run(out), VALUES[:1] + 1)


def test_the_lod_comes_with_it(tmp_path):
    out = loading(written(tmp_path / "x", lod=((0, 1, 3),)))
    assert run(out, return_numpy=False).lod() == [[0, 1, 3]]


def test_half_precision_where_it_is_asked_for(tmp_path):
    assert run(loading(written(tmp_path / "x"), load_as_fp16=True)).dtype == np.float16


def test_a_parameter_keeps_what_was_read(tmp_path):
    weight = fluid.layers.create_parameter([3, 2], "float32", name="w")
    fluid.layers.load(weight, written(tmp_path / "w"))
    fluid.Executor().run(fluid.default_startup_program())
    fluid.Executor().run()
    assert np.array_equal(np.array(fluid.global_scope().find_var("w").get_tensor()), VALUES)


def test_it_reads_what_save_vars_wrote(tmp_path):
    weight = fluid.layers.create_parameter([2, 2], "float32", name="w")
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    fluid.io.save_vars(executor, str(tmp_path), vars=[weight])
    with fluid.program_guard(fluid.Program()):
        found = run(loading(str(tmp_path / "w")))
    assert np.array_equal(found, np.array(fluid.global_scope().find_var("w").get_tensor()))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProgramError, match="cannot read .*nothing.* expected a file that fluid.io.save_vars wrote"):
        run(loading(str(tmp_path / "nothing")))


def test_a_file_of_several_variables_is_refused(tmp_path):
    with pytest.raises(CheckpointDamaged, match="more in the file after the tensor"):
        run(loading(written(tmp_path / "x", times=2)))
