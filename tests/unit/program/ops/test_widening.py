"""fleet_mpi/program/ops/widening.py."""

import numpy as np
import pytest

from fleet_mpi.fluid import layers
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from tests.unit.program.building import from_scratch, parameter
from tests.unit.program.ops.checking import StandInPlace

X = np.random.default_rng(1).normal(30.0, 1.0, (64, 2, 8, 8)).astype("float16")


def batch_norm(x):
    """With float32 parameters, whatever the data's type."""
    inputs = {slot: parameter(slot, values) for slot, values in (
        ("Scale", [2, 1]), ("Bias", [0.5, 1]), ("Mean", [0, 0]), ("Variance", [1, 1]))}
    outputs = {"Y": ["y"], "MeanOut": ["Mean"], "VarianceOut": ["Variance"], "SavedMean": ["m"], "SavedVariance": ["v"]}
    block = default_main_program().global_block()
    block.append_op("batch_norm", {"X": [x], **inputs}, outputs)
    return block.var("y")


NETWORKS = {"batch_norm": batch_norm, "layer_norm": layers.layer_norm,
            "pool2d": lambda x: layers.pool2d(x, pool_type="avg", global_pooling=True)}


def found(network, dtype, place):
    """The output, and the gradient of its weighted sum, for the same data in an element type."""
    with from_scratch():
        x = layers.data("x", [2, 8, 8], dtype=dtype)
        x.stop_gradient = False
        out = network(x)
        weights = layers.data("weights", out.shape[1:], dtype=dtype)
        grad, = gradients(out * weights, x)
        executor = Executor(place)
        executor.run(default_startup_program())
        shape = (64, *out.shape[1:])
        given = np.random.default_rng(2).normal(size=shape).astype("float16").astype(dtype)
        return executor.run(feed={"x": X.astype(dtype), "weights": given}, fetch_list=[out, grad])


@pytest.mark.parametrize("place", (CPUPlace, StandInPlace))
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_float16_numbers_are_computed_with_in_float32(network, place):
    for half, single in zip(found(network, "float16", place()), found(network, "float32", place()), strict=True):
        assert half.dtype == np.float16
        np.testing.assert_array_equal(half, single.astype("float16"))
