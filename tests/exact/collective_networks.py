"""Small networks and batches for jobs of several workers."""

import numpy as np

from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.math import square_error_cost
from fleet_mpi.program.layers.nn import batch_norm
from fleet_mpi.program.layers.reduction import mean

FEATURES = 6


def line():
    """A regression with one hidden layer."""
    x, y = data("x", [FEATURES]), data("y", [1])
    return mean(square_error_cost(fc(fc(x, 8, act="tanh"), 1), y))


def wide():
    """One parameter of 24576 elements, which compression takes, and small ones, which it leaves."""
    x, y = data("x", [FEATURES]), data("y", [1])
    return mean(square_error_cost(fc(fc(x, 4096, act="tanh"), 1), y))


def normed():
    """With a batch norm and a relu behind it."""
    x, y = data("x", [FEATURES]), data("y", [1])
    return mean(square_error_cost(fc(batch_norm(fc(x, 8), act="relu"), 1), y))


def batches(steps, workers, rows=5, seed=0):
    """``feeds[step][worker]``, all different."""
    rng = np.random.default_rng(seed)
    return [[_batch(rng, rows) for _ in range(workers)] for _ in range(steps)]


def _batch(rng, rows):
    x = rng.normal(size=(rows, FEATURES)).astype("float32")
    return {"x": x, "y": (x.sum(1, keepdims=True) + rng.normal(size=(rows, 1))).astype("float32")}
