"""Fusion: which pairs become one op, which must not, and that results keep their bits."""

import numpy as np
import pytest

from fleet_mpi.program.engine import fusion, plan
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.fusion import fuse_training
from fleet_mpi.program.engine.liveness import live_ops
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import loss, nn
from fleet_mpi.program.layers.activation import relu
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.math import elementwise_add
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.optimizers import paddle2, plain
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import from_scratch, parameter

rng = np.random.default_rng(0)


def image():
    return data("image", [3, 6, 6], stop_gradient=False)


def mean(x):
    return single_op("mean", {"X": x})


def planned(*fetches):
    """The types of ops that a plan runs."""
    names = [one if isinstance(one, str) else one.name for one in fetches]
    return [op.type for op in fusion.fuse(live_ops(default_main_program(), names), names)]


def network():
    """A small residual network with all pairs in it."""
    x, label = image(), data("label", [1], dtype="int64")
    made = nn.batch_norm(nn.conv2d(x, 4, 3, padding=1, bias_attr=False), act="relu")
    rest = nn.batch_norm(nn.conv2d(made, 4, 3, padding=1))
    made = elementwise_add(made, rest, act="relu")
    made = fc(nn.pool2d(made, 2, "avg", 2), 16, act="relu")
    return mean(loss.softmax_with_cross_entropy(fc(made, 5), label))


def feed():
    return {"image": rng.normal(size=(4, 3, 6, 6)).astype("f"), "label": rng.integers(0, 5, (4, 1))}


def test_all_pairs_of_a_residual_network_are_found():
    cost = network()
    SGD(0.1).minimize(cost)
    types = planned(cost)
    assert types.count("fused_batch_norm_act") == types.count("fused_batch_norm_act_grad") == 1
    assert types.count("fused_elemwise_activation") == 2  # the residual sum, and the bias of the first fc
    assert types.count("fused_elemwise_activation_grad") == 1  # of the bias; the residual's gradients are views
    assert "relu" not in types and types.count("relu_grad") == 1
    assert "fused_batch_norm_act" not in str(default_main_program())


def trained(batches):
    """Losses and parameters after training in a scope of its own."""
    main = default_main_program()
    with scope_guard(Scope()):
        executor = Executor()
        executor.run(default_startup_program())
        costs = [executor.run(feed=batch, fetch_list=["cost"])[0].tobytes() for batch in batches]
        values = {param.name: np.array(global_scope().find_var(param.name).get_tensor())
                  for param in main.all_parameters()}
    return costs, values


def test_training_gives_the_same_bits_with_and_without_fusion(monkeypatch):
    cost = network()
    default_main_program().global_block()._rename_var(cost.name, "cost")
    SGD(0.1).minimize(cost)
    default_startup_program().random_seed = 3
    batches = [feed() for _ in range(3)]
    costs, values = trained(batches)
    monkeypatch.setattr(plan, "fuse", lambda ops, fetches: ops)
    plain_costs, plain_values = trained(batches)
    assert costs == plain_costs
    for name, value in values.items():
        np.testing.assert_array_equal(value, plain_values[name], err_msg=name)


def test_programs_are_not_changed():
    cost = network()
    SGD(0.1).minimize(cost)
    before, version = str(default_main_program()), default_main_program().version
    planned(cost)
    assert str(default_main_program()) == before and default_main_program().version == version


def test_a_test_program_is_fused_too():
    cost = network()
    frozen = default_main_program().clone(for_test=True)
    types = [op.type for op in fusion.fuse(live_ops(frozen, [cost.name]), [cost.name])]
    assert types.count("fused_batch_norm_act") == 1


def test_what_is_fetched_is_made():
    normal = nn.batch_norm(image())
    out = relu(normal)
    assert planned(out) == ["fused_batch_norm_act"]
    assert planned(out, normal) == ["batch_norm", "relu"]


def test_what_somebody_else_reads_is_made():
    normal = nn.batch_norm(image())
    out = elementwise_add(relu(normal), normal)
    assert planned(out) == ["batch_norm", "relu", "elementwise_add"]


def test_a_gradient_that_is_fetched_is_made():
    normal = nn.batch_norm(image())
    cost = mean(relu(normal))
    SGD(0.1).minimize(cost)
    types = planned(cost, normal.name + "@GRAD")
    assert "fused_batch_norm_act" in types and "relu_grad" in types and "batch_norm_grad" in types


def test_an_output_that_is_written_twice_is_left_alone():
    block = default_main_program().global_block()
    x = image()
    total = elementwise_add(x, x)
    out = block.create_var(name="out", dtype="float32")
    block.append_op("assign", {"X": [x]}, {"Out": [out]})
    again = single_op("scale", {"X": out}, {"scale": 2.0})
    block.append_op("relu", {"X": [total]}, {"Out": [out]})
    assert planned(again, "out") == ["elementwise_add", "assign", "scale", "relu"]


def test_a_counter_is_not_written_before_its_old_value_is_read():
    block = default_main_program().global_block()
    counter = block.create_var(name="counter", shape=[1], dtype="float32", persistable=True)
    total = elementwise_add(counter, counter)
    before = single_op("scale", {"X": counter}, {"scale": 1.0})
    block.append_op("relu", {"X": [total]}, {"Out": [counter]})
    assert planned(before) == ["elementwise_add", "scale", "relu"]
    global_scope().var("counter").get_tensor().set(np.array([2], "float32"))
    executor = Executor()
    found = [executor.run(fetch_list=[before, counter]) for _ in range(2)]
    assert [[float(value) for value in values] for values in found] == [[2, 4], [4, 8]]


def test_what_is_read_before_it_is_computed_is_what_was_fed():
    x, fed = image(), data("fed", [3, 6, 6])
    block = default_main_program().global_block()
    first = relu(fed)
    block.append_op("elementwise_add", {"X": [x], "Y": [x]}, {"Out": [fed]})
    given = {"image": feed()["image"], "fed": feed()["image"]}
    np.testing.assert_array_equal(Executor().run(feed=given, fetch_list=[first])[0], np.maximum(given["fed"], 0))


@pytest.mark.parametrize("shape, axis", [([6], -1), ([3], 1), ([3, 6, 6], -1), ([1], -1)])
def test_sums_of_any_stretching_give_what_two_ops_give(shape, axis):
    x, y = image(), data("y", shape, append_batch_size=False)
    out = elementwise_add(x, y, axis=axis, act="relu")
    assert planned(out) == ["fused_elemwise_activation"]
    given = {"image": feed()["image"], "y": rng.normal(size=shape).astype("f")}
    made = Executor().run(feed=given, fetch_list=[out])[0]
    stretched = given["y"].reshape(-1, 1, 1) if axis == 1 else given["y"]
    np.testing.assert_array_equal(made, np.maximum(given["image"] + stretched, 0))


def gradient():
    return data("g", [3], append_batch_size=False)


def updated(make, steps=4, alone=False):
    """{variable: value} after some steps of a new optimizer on a parameter of three numbers."""
    with from_scratch():
        make().apply_gradients([(parameter("w", [1.0, 2.0, 3.0]), gradient())])
        executor = Executor()
        executor.run(default_startup_program())
        if alone:
            default_main_program().global_block().ops[-1].attrs["scale"] += 1e-9  # no longer the optimizer's own
        for step in range(steps):
            executor.run(feed={"g": np.array([0.1, -0.2, 0.3], "float32") * step})
        return {name: global_scope().array(name).copy() for name in global_scope().local_var_names()
                if global_scope().array(name) is not None}


@pytest.mark.parametrize("name, powers", (("Adam", 2), ("Adamax", 1), ("Lamb", 2)))
def test_an_update_moves_its_beta_powers_on_in_its_own_call(name, powers):
    with from_scratch():
        getattr(plain, name)(0.1).apply_gradients([(parameter("w", [1.0, 2.0, 3.0]), gradient())])
        ops = default_main_program().global_block().ops
        assert [op.type for op in ops] == [name.lower()] + ["scale"] * powers
        fused, = fuse_training(ops)
        assert [slot for slot in fused.outputs if "Pow" in slot] == ["Beta1PowOut", "Beta2PowOut"][:powers]
        assert not any("Pow" in slot for slot in ops[0].outputs)


@pytest.mark.parametrize("name", ("Adam", "Adamax", "Lamb"))
def test_the_bits_are_those_of_one_op_and_by_themselves_the_ops_are_right(name):
    one_op = updated(lambda: getattr(paddle2, name)(0.1))
    shown, alone = (updated(lambda: getattr(plain, name)(0.1), alone=alone) for alone in (False, True))
    assert shown.keys() == one_op.keys() and all((shown[key] == one_op[key]).all() for key in shown)
    for key in alone:
        np.testing.assert_allclose(alone[key], one_op[key], rtol=1e-5)


def test_a_power_that_others_read_in_between_is_left_to_its_op():
    plain.Adamax(0.1).apply_gradients([(parameter("w", [1.0, 2.0, 3.0]), gradient())])
    block = default_main_program().global_block()
    block.create_var(name="seen", shape=[1], dtype="float32")
    block._insert_op(1, "assign", {"X": ["w_beta1_pow_acc_0"]}, {"Out": ["seen"]}, {})
    assert [op.type for op in fuse_training(block.ops)] == ["adamax", "assign", "scale"]
