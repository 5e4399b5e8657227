"""What is saved from a scope loads again, or is refused by name; models for inference, and objects."""

import os
import subprocess
import sys

import numpy as np
import pytest

from fleet_mpi.checkpoint import objects
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensor, write_tensor
from fleet_mpi.checkpoint.loading import load_params, load_persistables, load_vars
from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.checkpoint.saving import save_inference_model, save_params, save_persistables
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import Program
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import sparse_embedding


@pytest.fixture
def model(programs):
    """A small network, its values set: (program, output variable)."""
    main, _ = programs
    x = main.global_block().create_var(name="x", shape=[-1, 3], is_data=True, stop_gradient=True)
    out = fc(fc(x, 4, name="one"), 2, name="two")
    for i, param in enumerate(main.all_parameters()):
        values = np.random.default_rng(i).normal(size=param.shape).astype("float32")
        global_scope().var(param.name).get_tensor().set(values)
    return main, out


def values(program):
    return {param.name: global_scope().array(param.name).copy() for param in program.all_parameters()}


@pytest.mark.parametrize("filename", [None, "all"])
def test_what_is_saved_comes_back_to_the_bit(model, tmp_path, filename):
    program, _ = model
    before = values(program)
    save_persistables(None, str(tmp_path), program, filename)
    for name in before:
        global_scope().array(name)[...] = 0
    load_persistables(None, str(tmp_path), program, filename)
    assert all((values(program)[name] == before[name]).all() for name in before)


def test_one_file_per_variable_and_one_file_in_name_order(model, tmp_path):
    program, _ = model
    save_params(None, str(tmp_path / "each"), program)
    names = sorted(name for name in os.listdir(tmp_path / "each") if name != manifest.NAME)
    assert names == ["one.b_0", "one.w_0", "two.b_0", "two.w_0"]
    save_params(None, str(tmp_path), program, "all")
    parts = b"".join((tmp_path / "each" / name).read_bytes() for name in sorted(values(program)))
    assert (tmp_path / "all").read_bytes() == parts


def test_a_name_with_slashes_makes_folders(tmp_path):
    program = Program()
    var = program.global_block().create_var(name="a/b/c", shape=[2], persistable=True)
    with scope_guard(Scope()):
        global_scope().var(var.name).get_tensor().set(np.ones(2, "float32"))
        save_persistables(None, str(tmp_path), program)
    with open(tmp_path / "a" / "b" / "c", "rb") as stream:
        assert read_tensor(stream)[0].tolist() == [1, 1]


def test_a_checkpoint_that_does_not_fit_names_all_differences_and_changes_nothing(model, tmp_path):
    program, _ = model
    save_persistables(None, str(tmp_path), program)
    for name, array in (("one.w_0", np.zeros((5, 4), "float32")), ("two.b_0", np.zeros(2))):
        with open(tmp_path / name, "wb") as stream:
            write_tensor(stream, array)
    before = values(program)
    with pytest.raises(CheckpointDamaged,
                       match=r"2 of 4 files are not what was saved: one\.w_0, two\.b_0.*remove .*saves"):
        load_persistables(None, str(tmp_path), program)
    os.remove(tmp_path / manifest.NAME)
    with pytest.raises(CheckpointDamaged, match=r"one\.w_0.*\[3, 4\].*\[5, 4\].*two\.b_0.*float64"):
        load_persistables(None, str(tmp_path), program)
    assert all((values(program)[name] == before[name]).all() for name in before)


def test_a_missing_file_is_named(model, tmp_path):
    program, _ = model
    save_persistables(None, str(tmp_path), program)
    os.remove(tmp_path / "two.w_0")
    with pytest.raises(CheckpointDamaged, match="two.w_0"):
        load_persistables(None, str(tmp_path), program)


def test_only_variables_chosen_by_the_predicate_are_loaded(model, tmp_path):
    program, _ = model
    save_persistables(None, str(tmp_path), program)
    for param in program.all_parameters():
        global_scope().array(param.name)[...] = 0
    load_vars(None, str(tmp_path), program, predicate=lambda var: var.name == "one.w_0")
    assert values(program)["one.w_0"].any() and not values(program)["two.w_0"].any()


def test_saving_what_has_no_value_is_refused(model, tmp_path):
    program, _ = model
    with scope_guard(Scope()), pytest.raises(UsageError, match="startup"):
        save_persistables(None, str(tmp_path), program)


LOADER = """
import sys, numpy as np
from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.program.engine.executor import Executor
exe = Executor()
program, feeds, fetches = load_inference_model(sys.argv[1], exe, params_filename="params")
out, = exe.run(program, feed={feeds[0]: np.load(sys.argv[2])}, fetch_list=fetches)
np.save(sys.argv[3], out)
"""


def test_a_model_saved_by_one_process_gives_equal_bits_in_another(model, tmp_path):
    program, out = model
    batch = np.random.default_rng(9).normal(size=(5, 3)).astype("float32")
    want, = Executor().run(program, feed={"x": batch}, fetch_list=[out])
    names = save_inference_model(str(tmp_path), ["x"], [out], None, program, params_filename="params")
    assert names == [out.name]
    np.save(tmp_path / "batch.npy", batch)
    subprocess.run([sys.executable, "-c", LOADER, str(tmp_path), str(tmp_path / "batch.npy"),
                    str(tmp_path / "out.npy")], check=True, timeout=120)
    assert (np.load(tmp_path / "out.npy") == want).all()


def test_an_inference_model_holds_only_what_its_targets_need(model, tmp_path):
    program, out = model
    middle = program.global_block().ops[1].output("Out")[0]
    save_inference_model(str(tmp_path), ["x"], [program.global_block().var(middle)], None, program)
    loaded, feeds, fetches = load_inference_model(str(tmp_path), None)
    assert feeds == ["x"] and [var.name for var in fetches] == [middle]
    assert [param.name for param in loaded.all_parameters()] == ["one.w_0", "one.b_0"]


def test_a_target_that_needs_more_data_than_is_fed_is_refused(model, tmp_path):
    program, out = model
    with pytest.raises(UsageError, match="'x'"):
        save_inference_model(str(tmp_path), [], [out], None, program)


def test_a_damaged_model_file_is_a_sentence(model, tmp_path):
    (tmp_path / "__model__").write_bytes(b"\x08\x01something else")
    with pytest.raises(CheckpointDamaged, match="no fleet_mpi program"):
        load_inference_model(str(tmp_path), None)


def test_nested_dictionaries_come_back(tmp_path):
    state = {"w": np.arange(3.0), "opt": {"step": 4, "m": np.ones((2, 2))}}
    objects.save(state, str(tmp_path / "model.pdparams"))
    back = objects.load(str(tmp_path / "model.pdparams"))
    assert (back["w"] == state["w"]).all() and int(back["opt"]["step"]) == 4
    with pytest.raises(UsageError, match="function"):
        objects.save({"f": test_nested_dictionaries_come_back}, str(tmp_path / "x"))


@pytest.mark.parametrize("save, load", [(save_persistables, load_persistables), (save_params, load_params)])
@pytest.mark.parametrize("filename", [None, "all"])
def test_a_table_that_has_grown_comes_back_with_its_ids(tmp_path, programs, save, load, filename):
    main, startup = programs
    out = sparse_embedding(data("ids", [1], dtype="int64"), [2, 3], param_attr="table")
    feed, found = {"ids": np.array([[10 ** 10], [5], [-7], [4]])}, []
    for step in (save, load):
        with scope_guard(Scope()):
            executor = Executor()
            executor.run(startup)
            if step is save:
                executor.run(main, feed, [out])
                global_scope().array("table")[...] += 1
            step(executor, str(tmp_path), main, filename)
            found.append(executor.run(main.clone(for_test=True), feed, [out])[0])
    assert (found[0] == found[1]).all() and len(np.unique(found[0])) > 4
