"""Activations as classes (activation_classes, functional_activation) against numpy."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import activation_classes as classes, functional_activation
from fleet_mpi.program.layers.data import static_data

X = np.random.default_rng(0).normal(0, 2, (2, 4, 3)).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


CASES = {
    "ELU": (classes.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "SELU": (classes.SELU(), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "Silu": (classes.Silu(), lambda x: x * sigmoid(x)), "Swish": (classes.Swish(), lambda x: x * sigmoid(x)),
    "Mish": (classes.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "ReLU6": (classes.ReLU6(), lambda x: x.clip(0, 6)),
    "Softplus": (classes.Softplus(beta=2), lambda x: np.log1p(np.exp(2 * x)) / 2),
    "Softsign": (classes.Softsign(), lambda x: x / (1 + np.abs(x))),
    "Softshrink": (classes.Softshrink(0.3), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.3, 0)),
    "Hardshrink": (classes.Hardshrink(), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "Hardtanh": (classes.Hardtanh(-0.5, 2.0), lambda x: x.clip(-0.5, 2)),
    "Hardsigmoid": (classes.Hardsigmoid(), lambda x: (x / 6 + 0.5).clip(0, 1)),
    "Hardswish": (classes.Hardswish(), lambda x: x * (x + 3).clip(0, 6) / 6),
    "Tanhshrink": (classes.Tanhshrink(), lambda x: x - np.tanh(x)),
    "ThresholdedReLU": (classes.ThresholdedReLU(0.7), lambda x: np.where(x > 0.7, x, 0)),
    "LogSigmoid": (classes.LogSigmoid(), lambda x: np.log(sigmoid(x))),
    "LogSoftmax": (classes.LogSoftmax(axis=1), lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
    "Maxout": (classes.Maxout(2), lambda x: x.reshape(2, 2, 2, 3).max(2)),
    "glu": (lambda x: functional_activation.glu(x, axis=1), lambda x: x[:, :2] * sigmoid(x[:, 2:])),
}


@pytest.mark.parametrize("name", CASES)
def test_a_class_computes_what_numpy_does(name):
    layer, definition = CASES[name]
    found, = Executor().run(feed={"x": X}, fetch_list=[layer(static_data("x", [None, 4, 3]))])
    np.testing.assert_allclose(found, definition(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 4])
def test_learned_slopes(count):
    layer = classes.PReLU(count, init=0.3)
    executor, out = Executor(), layer(static_data("x", [None, 4, 3]))
    executor.run(default_startup_program())
    found, = executor.run(feed={"x": X}, fetch_list=[out])
    np.testing.assert_allclose(found, np.where(X > 0, X, 0.3 * X), rtol=1e-5)
    assert layer.parameters()[0].shape == (count,)
    with pytest.raises(UsageError, match="prelu: expected one number"):
        classes.PReLU(3)(static_data("x", [None, 4, 3]))
    with pytest.raises(NotBuilt, match="channels must come second"):
        classes.PReLU(3, data_format="NHWC")
