"""Methods of variables are the layers of 2.x."""

import importlib

import numpy as np
import pytest

from fleet_mpi.program.build.variable_methods import METHODS
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.data import data

X = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4)).astype("float32")

CASES = {
    "reshape": (lambda x: x.reshape([0, -1]), lambda x: x.reshape(2, -1)),
    "unsqueeze and squeeze": (lambda x: x.unsqueeze(1).squeeze(axis=1), lambda x: x),
    "transpose": (lambda x: x.transpose([0, 2, 1]), lambda x: x.swapaxes(1, 2)),
    "sum": (lambda x: x.sum(axis=1, keepdim=True), lambda x: x.sum(1, keepdims=True)),
    "max": (lambda x: x.max(-1), lambda x: x.max(-1)),
    "flatten": (lambda x: x.flatten(1), lambda x: x.reshape(2, -1)),
    "matmul": (lambda x: x.matmul(x, transpose_y=True), lambda x: x @ x.swapaxes(1, 2)),
    "clip and pow": (lambda x: x.clip(1.0).pow(2.0), lambda x: x.clip(1) ** 2),
    "exp and log": (lambda x: x.exp().log(), lambda x: x),
    "norm": (lambda x: x.norm(), lambda x: np.array([np.sqrt((x ** 2).sum())])),
    "var": (lambda x: x.var(axis=2), lambda x: x.var(2, ddof=1)),
    "std": (lambda x: x.std(axis=[1, 2], unbiased=False), lambda x: x.std((1, 2))),
    "logsumexp": (lambda x: x.logsumexp(axis=1), lambda x: np.log(np.exp(x).sum(1))),
    "roll": (lambda x: x.roll([1, -1], axis=[1, 2]), lambda x: np.roll(x, [1, -1], (1, 2))),
    "split": (lambda x: x.split(3, axis=1)[1], lambda x: x[:, 1:2]),
    "detach": (lambda x: x.detach(), lambda x: x),
    "numel": (lambda x: x.numel(), lambda x: np.array([x.size])),
    "masked_select": (lambda x: x.masked_select(x > 1.0), lambda x: x[x > 1]),
    "log2 and log10": (lambda x: x.log2() + x.log10(), lambda x: np.log2(x) + np.log10(x)),
    "median": (lambda x: x.flatten().median(), lambda x: np.median(x).reshape(1)),
    "trace": (lambda x: x.trace(0, 1, 2), lambda x: np.trace(x, 0, 1, 2)),
    "kron and dist": (lambda x: x.kron(x).dist(x.kron(x) * 2.0, 1), lambda x: np.kron(x, x).sum().reshape(1)),
    "topk": (lambda x: x.topk(2, axis=1)[0], lambda x: -np.sort(-x, axis=1)[:, :2]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_method_computes_what_numpy_does(name):
    layer, wanted = CASES[name]
    found, = Executor().run(feed={"x": X}, fetch_list=[layer(data("x", [3, 4]))])
    np.testing.assert_allclose(found, wanted(X), rtol=1e-5, atol=1e-6)


def test_every_method_has_its_layer():
    for module, names in METHODS.items():
        layers = importlib.import_module(f"fleet_mpi.program.layers.{module}")
        for pair in names.split():
            name, _, method = pair.partition(":")
            assert callable(getattr(layers, name)) and getattr(Variable, method or name).__doc__


def test_what_is_known_while_building():
    x = data("x", [3, 4])
    assert x.ndim == x.dim() == x.ndimension() == 3
    assert x.detach().stop_gradient
