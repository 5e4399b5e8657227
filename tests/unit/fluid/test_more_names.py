"""What more than a name is among those of T1b and T2: seeds, descriptions, tensors, places, transpilers."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet.facade import CollectiveFleet
from fleet_mpi.fluid.incubate.checkpoint.auto_checkpoint import ExeTrainStatus
from fleet_mpi.fluid.incubate.checkpoint.checkpoint_saver import CheckpointSaver
from fleet_mpi.fluid.transpiler.details import program_utils
from fleet_mpi.program.graph.program import Program


def test_programs_made_later_have_the_global_seed(monkeypatch):
    monkeypatch.setattr(Program, "_seed_of_new", 0)
    before = fluid.Program()
    fluid.Program.global_seed(102)
    assert (before.random_seed, fluid.Program().random_seed) == (0, 102)


def test_an_op_is_described_by_methods():
    out = fluid.layers.scale(fluid.data("x", [None, 2]), 3.0)
    op, = fluid.default_main_program().global_block().ops
    desc = op.desc
    assert (desc.type(), desc.input("X"), desc.output("Out")) == ("scale", ["x"], [out.name])
    assert (desc.input_names(), desc.output_names()) == (["X"], ["Out"])
    assert (desc.input_arg_names(), desc.output_arg_names()) == (["x"], [out.name])
    assert desc.attr("scale") == 3.0 and desc.has_attr("scale") and "scale" in desc.attr_names()
    desc._set_attr("scale", 4.0)
    desc._rename_input("x", "y"), desc._rename_output(out.name, "z")
    assert op.attr("scale") == 4.0 and (op.input("X"), op.output("Out")) == (["y"], ["z"])


def test_a_variable_may_be_fed_unchecked():
    x = fluid.data("x", [None, 2])
    x.desc.set_need_check_feed(False)
    assert x.need_check_feed is False


def test_random_tensors_of_sequences():
    tensor = fluid.create_random_int_lodtensor([[2, 3]], [4], fluid.CPUPlace(), low=1, high=2)
    values = np.array(tensor)
    assert values.shape == (5, 4) and values.dtype == "int64" and set(values.ravel()) == {1, 2}
    assert tensor.recursive_sequence_lengths() == [[2, 3]]


def test_fetched_tensors_become_arrays():
    made = fluid.LoDTensor()
    made.set(np.ones((2, 1)))
    first, second = fluid.executor.as_numpy([made, made])
    assert type(first) is np.ndarray and (first == second).all()
    made.set_lod([[0, 1, 2]])
    with pytest.raises(UsageError, match="sequences of different lengths"):
        fluid.executor.as_numpy(made)


def test_places():
    assert fluid.cuda_pinned_places(2) == [fluid.CUDAPinnedPlace()] * 2
    core = fluid.core
    assert not (core.is_compiled_with_rocm() or core.supports_bfloat16() or core.is_compiled_with_xpu())
    with pytest.raises(NotBuilt, match="take CPUPlace or CUDAPlace"):
        fluid.XPUPlace(0)


def test_ops_are_found_by_what_they_read_and_write():
    out = fluid.layers.mean(fluid.layers.scale(fluid.data("x", [None, 2]), 3.0))
    block = fluid.default_main_program().global_block()
    assert program_utils.find_op_by_input_arg(block, "x") == 0
    assert program_utils.find_op_by_output_arg(block, out.name) == 1
    assert program_utils.find_op_by_output_arg(block, "nothing", reverse=True) == -1
    fluid.transpiler.details.delete_ops(block, block.ops[1:])
    assert [op.type for op in block.ops] == ["scale"]


def test_a_layer_of_ones_own_may_check_its_input():
    from fleet_mpi.fluid.data_feeder import check_dtype, check_type, check_variable_and_dtype
    x = fluid.data("x", [None, 2])
    check_variable_and_dtype(x, "x", ["float32", "float64"], "mine")
    check_type(3, "axis", (int, tuple), "mine"), check_dtype("int64", "label", ["int32", "int64"], "mine")
    with pytest.raises(TypeError, match="mine: the element type of 'x' must be one of int64, got float32"):
        check_variable_and_dtype(x, "x", ["int64"], "mine")
    with pytest.raises(TypeError, match="mine: 'x' must be .*Variable"):
        check_variable_and_dtype(3, "x", ["int64"], "mine")


def test_structures_are_flattened_and_packed():
    from fleet_mpi.fluid.layers import utils
    given = {"b": [1, (2, 3)], "a": 4}
    assert utils.flatten(given) == [4, 1, 2, 3] and utils.is_sequence(given)
    assert utils.pack_sequence_as(given, [5, 6, 7, 8]) == {"b": [6, (7, 8)], "a": 5}
    assert utils.map_structure(lambda one: -one, given) == {"b": [-1, (-2, -3)], "a": -4}


def test_the_geo_transpiler_exchanges_what_workers_moved():
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    made = fluid.transpiler.GeoSgdTranspiler()
    made.transpile(0, pservers="a:1,b:2", trainers=2)
    assert made.distribution.mode.name == "geo" and made.config.sync_mode is False


def test_inference_programs_are_left_as_they_are():
    fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    before = str(fluid.default_main_program())
    fluid.InferenceTranspiler().transpile(fluid.default_main_program(), fluid.CPUPlace())
    assert str(fluid.default_main_program()) == before


def test_checkpoints_by_their_later_names(tmp_path):
    fleet = CollectiveFleet()
    fleet.init()
    fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    weight = fluid.global_scope().find_var("w").get_tensor()
    before, status = weight.numpy().copy(), ExeTrainStatus()
    status.epoch_no = 4
    for _ in range(2):
        fleet.save_checkpoint(exe, str(tmp_path), trainer_id=0, train_status=status, remain_all_checkpoint=True)
    weight.set(before * 0)
    found = ExeTrainStatus()
    fleet.load_checkpoint(exe, str(tmp_path), trainer_id=0, train_status=found)
    assert (weight.numpy() == before).all() and found == status and found.next() == 5
    assert fleet._get_last_checkpoint_no(str(tmp_path)) == CheckpointSaver().get_last_checkpoint_no(str(tmp_path)) == 1
    assert CheckpointSaver().get_checkpoint_no(str(tmp_path)) == [0, 1]


def test_passes_over_programs_are_refused():
    with pytest.raises(NotBuilt, match="GradientMergeOptimizer"):
        fluid.BuildStrategy()._finalize_strategy_and_create_passes()
