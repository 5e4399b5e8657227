"""fleet_mpi/program/engine/precision.py."""

import numpy as np
import pytest

from fleet_mpi import testing
from fleet_mpi.arrays import to_host
from fleet_mpi.fluid import layers
from fleet_mpi.fluid.initializer import Constant
from fleet_mpi.fluid.optimizer import SGD
from fleet_mpi.program.build.amp import AutoMixedPrecisionLists, decorate
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.liveness import live_ops
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.precision import with_casts
from fleet_mpi.program.engine.scope import Scope, global_scope, scope_guard
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.wrappers import RecomputeOptimizer
from tests.unit.program.building import from_scratch
from tests.unit.program.ops.checking import StandInPlace

RNG = np.random.default_rng(2)
X = RNG.normal(size=(4, 3, 6, 6)).astype("float32")

# A gray op behind a white one: from [4, 2, 6, 6] to anything.
GRAY = {
    **{name: lambda x, name=name: getattr(layers, name)(
        x, layers.create_parameter([2], "float32", default_initializer=Constant(0.7)), axis=1)
       for name in ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max",
                    "elementwise_min")},
    "batch_norm": lambda x: layers.batch_norm(x, act="relu"),
    "layer_norm": lambda x: layers.layer_norm(x),
    "bias and relu": lambda x: layers.fc(x, 5, act="relu"),
    "tanh": layers.tanh, "sigmoid": layers.sigmoid, "relu": layers.relu, "relu6": layers.relu6,
    "leaky_relu": layers.leaky_relu, "soft_relu": layers.soft_relu, "scale": lambda x: layers.scale(x, 3.0, 1.0),
    "max pool": lambda x: layers.pool2d(x, 2, "max", 2), "average pool": lambda x: layers.pool2d(x, 2, "avg", 2),
    "dropout": lambda x: layers.dropout(x, 0.3, seed=3, dropout_implementation="upscale_in_train"),
    "flatten": layers.flatten, "stack": lambda x: layers.stack([x, x]), "unstack": lambda x: layers.unstack(x, 1)[0],
    "slice": lambda x: layers.slice(x, [1], [0], [1]), "transpose": lambda x: layers.transpose(x, [1, 0, 2, 3]),
    "reshape": lambda x: layers.reshape(x, [4, -1]),
    "gather": lambda x: layers.gather(x, layers.fill_constant([2], "int32", 1)),
    "concat": lambda x: layers.concat([x, x], 1), "split": lambda x: layers.split(x, 2, 1)[1],
    "matmul": lambda x: layers.matmul(x, x, transpose_y=True, alpha=0.1),
    "residual": lambda x: layers.elementwise_add(x, layers.relu(x), act="relu"),
    "black and back": lambda x: layers.conv2d(layers.square(layers.tanh(x)) + layers.scale(x, 0.2), 3, 3),
}


def trained(network, place, optimizer=decorate, steps=2, fetch=()):
    """The parameters after some steps of a network behind a convolution, the fetches of the last, and its loss."""
    with from_scratch(), scope_guard(Scope()):
        default_main_program().random_seed = default_startup_program().random_seed = 5
        first = layers.conv2d(layers.data("x", [3, 6, 6]), 2, 3, padding=1, bias_attr=False)
        loss = layers.mean(layers.square(network(first)))
        optimizer(SGD(0.05)).minimize(loss)
        executor = Executor(place)
        executor.run(default_startup_program())
        names = [first.name if one == "first" else one for one in fetch]
        for _ in range(steps):
            found = executor.run(feed={"x": X}, fetch_list=[loss, *names])
        params = {param.name: to_host(global_scope().array(param.name)) for param in
                  default_main_program().all_parameters()}
    return params, found


def scaled(**options):
    return lambda inner: decorate(inner, init_loss_scaling=16.0, **options)


@pytest.mark.parametrize("network", GRAY.values(), ids=GRAY)
def test_a_network_in_float16_learns_what_it_learns_in_float32(network):
    half, (_, first) = trained(network, StandInPlace(), scaled(), fetch=("first",))
    single, _ = trained(network, StandInPlace(), lambda inner: inner)
    assert first.dtype == np.float16
    for name, array in half.items():
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, single[name], rtol=2e-2, atol=2e-3, err_msg=name)
    assert any((half[name] != single[name]).any() for name in half)


def test_a_host_computes_in_float32_as_without_marks():
    half, (loss, first) = trained(GRAY["residual"], CPUPlace(), scaled(), fetch=("first",))
    single, (plain_loss,) = trained(GRAY["residual"], CPUPlace(), lambda inner: inner)
    assert first.dtype == np.float32 and loss == plain_loss
    for name, array in half.items():
        np.testing.assert_array_equal(array, single[name])


def test_without_white_ops_a_device_gives_the_bits_of_float32():
    lists = AutoMixedPrecisionLists(custom_black_list={"conv2d"})
    found, _ = trained(GRAY["relu"], StandInPlace(), scaled(amp_lists=lists))
    single, _ = trained(GRAY["relu"], StandInPlace(), lambda inner: inner)
    for name, array in found.items():
        np.testing.assert_array_equal(array, single[name])


def test_what_is_computed_a_second_time_is_computed_in_float16_too():
    def recomputing(inner):
        wrapped = RecomputeOptimizer(inner)
        wrapped._set_checkpoints(["conv2d_0.tmp_0"])
        return scaled()(wrapped)

    again, _ = trained(GRAY["residual"], StandInPlace(), recomputing)
    once, _ = trained(GRAY["residual"], StandInPlace(), scaled())
    for name, array in again.items():
        np.testing.assert_array_equal(array, once[name])


def plan_ops(*fetches):
    """The live ops of the default program with casts, as (type, inputs, outputs)."""
    ops = with_casts(live_ops(default_main_program(), fetches))
    return [(op.type, op.input_arg_names, op.output_arg_names) for op in ops]


def test_a_cast_is_made_once_for_all_that_read_it():
    x = layers.data("x", [3])
    total = layers.fc(x, 4, bias_attr=False) + layers.fc(x, 4, bias_attr=False)
    decorate(SGD(0.1)).minimize(layers.mean(total))
    ops = plan_ops()
    assert [inputs for type, inputs, _ in ops if type == "cast"].count(["x"]) == 1
    assert ops[0][:2] == ("cast_all", ["fc_0.w_0", "fc_1.w_0"])


def test_a_parameter_that_was_written_is_cast_where_it_is_read():
    weight = layers.create_parameter([3, 4], "float32")
    layers.assign(layers.fill_constant([3, 4], "float32", 2.0), weight)
    found = layers.mean(layers.mul(layers.data("x", [3]), weight))
    decorate(SGD(0.1)).minimize(found)
    types = [type for type, *_ in plan_ops()]
    assert "cast_all" not in types and types.count("cast") > types[:types.index("mul")].count("cast") > 1


def test_the_gradient_of_a_filter_is_made_in_float32_where_it_is_a_parameters():
    x = layers.data("x", [3, 6, 6])
    first = layers.conv2d(x, 2, 3, bias_attr=False)
    decorate(SGD(0.1)).minimize(layers.mean(first))
    ops = plan_ops()
    names = [outputs for type, _, outputs in ops if type == "conv2d_grad"]
    assert names == [["conv2d_0.w_0@GRAD"]]
    assert not any(type == "cast" and "conv2d_0.w_0@GRAD" in outputs for type, _, outputs in ops)


def test_a_variable_that_was_written_again_is_cast_again():
    x = layers.data("x", [3])
    first = layers.fc(x, 3, bias_attr=False)
    layers.increment(x)
    second = layers.fc(x, 3, bias_attr=False)
    decorate(SGD(0.1)).minimize(layers.mean(first + second))
    assert [inputs for type, inputs, _ in plan_ops() if type == "cast"].count(["x"]) == 2


def test_the_gradient_of_a_parameter_arrives_in_float32():
    x = layers.data("x", [3])
    loss = layers.mean(layers.fc(x, 4, bias_attr=False))
    decorate(SGD(0.1), init_loss_scaling=1.0).minimize(loss)
    executor = Executor(StandInPlace())
    executor.run(default_startup_program())
    grad, = executor.run(feed={"x": X[:, :, 0, 0]}, fetch_list=["fc_0.w_0@GRAD"])
    assert grad.dtype == np.float32
    np.testing.assert_allclose(grad, np.repeat(X[:, :, 0, 0].mean(0)[:, None] / 4, 4, 1), rtol=1e-2, atol=1e-4)


def test_gradients_with_respect_to_float16_variables_are_float16():
    hidden = layers.fc(layers.data("x", [3]), 4, bias_attr=False)
    loss = layers.mean(layers.scale(hidden, 2.0) + layers.relu(hidden))
    decorate(SGD(0.1)).minimize(loss)
    grad, = gradients(loss, hidden)
    executor = Executor(StandInPlace())
    executor.run(default_startup_program())
    found, = executor.run(feed={"x": X[:, :, 0, 0]}, fetch_list=[grad])
    assert found.dtype == np.float16 and set(found.ravel().tolist()) <= {2 / 16, 3 / 16}


def test_plain_programs_are_left_alone():
    layers.mean(layers.fc(layers.data("x", [3]), 4))
    ops = live_ops(default_main_program(), ["mean_0.tmp_0"])
    assert with_casts(ops) is ops


def test_the_device_of_these_tests_is_no_host():
    assert StandInPlace().array_module() is testing.device is not np
