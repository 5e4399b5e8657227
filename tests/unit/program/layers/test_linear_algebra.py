"""Layers of linear_algebra, statistics and positions with the argument lists of 2.x, against numpy."""

import numpy as np
import pytest

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers import linear_algebra, positions, statistics
from fleet_mpi.program.layers.data import static_data

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 4)).astype("float32")
Y = RNG.normal(size=(4, 4)).astype("float32")
CUBE = RNG.normal(size=(2, 3, 5)).astype("float32")
SQUARE = (X @ X.T + np.eye(4)).astype("float32")

# name: (layer of the variables x, y, cube, square; the same with numpy)
CASES = {
    "kron": (lambda x, y, c, s: linear_algebra.kron(x, y), lambda x, y, c, s: np.kron(x, y)),
    "cross": (lambda x, y, c, s: linear_algebra.cross(c, c * c, axis=1), lambda x, y, c, s: np.cross(c, c * c, axis=1)),
    "dist": (lambda x, y, c, s: linear_algebra.dist(x, y), lambda x, y, c, s: np.sqrt(((x - y) ** 2).sum()).reshape(1)),
    "dist by one": (lambda x, y, c, s: linear_algebra.dist(x, y, 1), lambda x, y, c, s: np.abs(x - y).sum().reshape(1)),
    "dist by the largest": (lambda x, y, c, s: linear_algebra.dist(x, y, float("inf")),
                            lambda x, y, c, s: np.abs(x - y).max().reshape(1)),
    "dist by none": (lambda x, y, c, s: linear_algebra.dist(x, y, 0), lambda x, y, c, s: np.array([16.0])),
    "inverse": (lambda x, y, c, s: linear_algebra.inverse(s), lambda x, y, c, s: np.linalg.inv(s)),
    "cholesky": (lambda x, y, c, s: linear_algebra.cholesky(s), lambda x, y, c, s: np.linalg.cholesky(s)),
    "upper cholesky": (lambda x, y, c, s: linear_algebra.cholesky(s, upper=True),
                       lambda x, y, c, s: np.linalg.cholesky(s).T),
    "trace": (lambda x, y, c, s: linear_algebra.trace(x), lambda x, y, c, s: np.trace(x).reshape(1)),
    "trace of a stack": (lambda x, y, c, s: linear_algebra.trace(c, 1, 1, 2), lambda x, y, c, s: np.trace(c, 1, 1, 2)),
    "diag": (lambda x, y, c, s: linear_algebra.diag(x, offset=1), lambda x, y, c, s: np.diag(x, 1)),
    "diagflat": (lambda x, y, c, s: linear_algebra.diagflat(x, 1), lambda x, y, c, s: np.diagflat(x, 1)),
    "diag_embed": (lambda x, y, c, s: linear_algebra.diag_embed(x), lambda x, y, c, s: np.eye(4) * x[:, None]),
    "median": (lambda x, y, c, s: statistics.median(c), lambda x, y, c, s: np.median(c).reshape(1)),
    "median of an axis": (lambda x, y, c, s: statistics.median(c, axis=1), lambda x, y, c, s: np.median(c, 1)),
    "median of an even axis": (lambda x, y, c, s: statistics.median(c, 0, True),
                               lambda x, y, c, s: np.median(c, 0, keepdims=True)),
    "median of all kept": (lambda x, y, c, s: statistics.median(c, keepdim=True),
                           lambda x, y, c, s: np.median(c).reshape(1, 1, 1)),
    "histogram": (lambda x, y, c, s: statistics.histogram(c, bins=4, min=-1, max=1),
                  lambda x, y, c, s: np.histogram(c, 4, (-1, 1))[0]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_computes_what_numpy_does(name):
    layer, definition = CASES[name]
    given = [static_data("x", [4, 4]), static_data("y", [4, 4]), static_data("c", [2, 3, 5]), static_data("s", [4, 4])]
    found, = Executor().run(feed={"x": X, "y": Y, "c": CUBE, "s": SQUARE}, fetch_list=[layer(*given)])
    want = definition(X, Y, CUBE, SQUARE)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_a_matrix_times_a_vector():
    out = linear_algebra.mv(static_data("x", [None, 4]), static_data("v", [4]))
    found, = Executor().run(feed={"x": X, "v": Y[0]}, fetch_list=[out])
    np.testing.assert_allclose(found, X @ Y[0], rtol=1e-5, atol=1e-6)


def test_a_diagonal_in_a_field_of_another_value():
    out = linear_algebra.diag(static_data("v", [3]), padding_value=6)
    found, = Executor().run(feed={"v": np.array([1, 2, 3], "float32")}, fetch_list=[out])
    assert found.tolist() == [[1, 6, 6], [6, 2, 6], [6, 6, 3]]


def test_the_median_of_integers_is_a_fraction():
    out = statistics.median(static_data("n", [4], "int64"))
    assert Executor().run(feed={"n": np.array([4, 1, 2, 9])}, fetch_list=[out])[0].tolist() == [3.0]


def test_the_median_of_a_batch_of_any_size():
    out = statistics.median(static_data("x", [None, 4]), axis=0)
    for size in (3, 4):
        found, = Executor().run(feed={"x": X[:size]}, fetch_list=[out])
        np.testing.assert_allclose(found, np.median(X[:size], 0), rtol=1e-6)


def test_samples_of_rows_and_counts_of_elements():
    chosen = positions.index_sample(static_data("x", [None, 4]), static_data("i", [None, 2], "int64"))
    distinct = positions.unique_with_counts(static_data("n", [None], "int64"))
    found = Executor().run(feed={"x": X, "i": np.array([[0, 3], [1, 1], [2, 0], [3, 3]]),
                                 "n": np.array([2, 3, 3, 1, 5, 3])},
                           fetch_list=[chosen, *distinct])
    np.testing.assert_array_equal(found[0], X[np.arange(4)[:, None], [[0, 3], [1, 1], [2, 0], [3, 3]]])
    assert [one.tolist() for one in found[1:]] == [[2, 3, 1, 5], [0, 1, 1, 2, 3, 1], [1, 3, 1, 1]]
    assert found[2].dtype == found[3].dtype == np.int32
