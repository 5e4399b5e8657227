"""Layers of program/layers/tensor_products.py."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import tensor_products as layers
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.tensor import create_tensor

rng = np.random.default_rng(0)
A, B, C = (rng.normal(size=(3, 3)).astype("float32") for _ in range(3))


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def test_products_added_to_something():
    a, b, c = (static_data(name, [3, 3]) for name in "abc")
    kept = create_tensor("float32")
    cases = {layers.addmm(a, b, c): A + B @ C, layers.addmm(a, b, c, alpha=0.5, beta=2.0): 2 * A + 0.5 * B @ C,
             layers.addcmul(a, b, c): A + B * C, layers.addcmul(a, b, c, 0.5, out=kept): A + 0.5 * B * C,
             layers.einsum("ij,jk->ik", a, b): A @ B, layers.einsum("ij,ij", [a, b]): [(A * B).sum()]}
    for (var, want), got in zip(cases.items(), run(*cases, a=A, b=B, c=C)):
        np.testing.assert_allclose(got, want, rtol=1e-4, err_msg=var.name)


def test_a_bilinear_form_has_a_matrix_for_each_output():
    one, other = data("one", [3]), data("other", [3])
    out = layers.bilinear_tensor_product(one, other, 4, act="relu")
    assert out.shape == (-1, 4)
    assert [param.shape for param in default_main_program().all_parameters()] == [(4, 3, 3), (1, 4)]
    value, weight = run(out, default_main_program().all_parameters()[0], one=A, other=B)
    np.testing.assert_allclose(value, np.maximum(np.einsum("bi,kij,bj->bk", A, weight, B), 0), rtol=1e-4, atol=1e-5)


def test_how_channels_go_together():
    one, other = data("one", [2, 4, 3]), data("other", [5, 4, 3])
    x, y = rng.normal(size=(2, 2, 4, 3)).astype("float32"), rng.normal(size=(2, 5, 4, 3)).astype("float32")
    np.testing.assert_allclose(run(layers.fsp_matrix(one, other), one=x, other=y)[0],
                               np.einsum("nihw,njhw->nij", x, y) / 12, rtol=1e-4, atol=1e-6)
    with pytest.raises(UsageError, match="fsp_matrix: expected two feature maps"):
        layers.fsp_matrix(one, data("smaller", [2, 2, 3]))


def test_positions_are_added():
    out = layers.add_position_encoding(static_data("x", [1, 2, 4]), alpha=2.0, beta=1.0)
    found, = run(out, x=np.ones((1, 2, 4), "float32"))
    np.testing.assert_allclose(found[0], [[2, 2, 3, 3], [2 + np.sin(1), 2 + np.sin(1e-4), 2 + np.cos(1), 3]], rtol=1e-5)
