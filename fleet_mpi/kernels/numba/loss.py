"""The loss kernels for host arrays, each in one pass."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.elementary import exp_of_negative, log_of_normal
from fleet_mpi.kernels.numba.softmax import _first_unknown
from fleet_mpi.kernels.reference.loss import LARGEST


def cross_entropy(probabilities, labels, match, loss, ignore_index):
    """Labels are checked first, so that no bad one is used as an index."""
    bad = _first_unknown(labels, probabilities.shape[1], ignore_index)
    if bad >= 0:
        return bad
    _cross_entropy(probabilities, labels, match, loss, ignore_index)
    return -1


def cross_entropy_backward(match, labels, dloss, dprobabilities, ignore_index):
    """Clear, then one element per row."""
    _cross_entropy_backward(match, labels, dloss, dprobabilities, ignore_index)


def log_loss(predicted, labels, loss, epsilon):
    """Two logarithms and no array between them."""
    _log_loss(predicted, labels, loss, predicted.dtype.type(epsilon))


def log_loss_backward(predicted, labels, dloss, dpredicted, epsilon):
    """One pass."""
    _log_loss_backward(predicted, labels, dloss, dpredicted, predicted.dtype.type(epsilon))


def sigmoid_cross_entropy(x, labels, out, ignore_index):
    """One exponential and one logarithm."""
    _sigmoid_cross_entropy(x, labels, out, x.dtype.type(ignore_index))


def sigmoid_cross_entropy_backward(x, labels, dout, dx, ignore_index):
    """One exponential."""
    _sigmoid_cross_entropy_backward(x, labels, dout, dx, x.dtype.type(ignore_index))


@compiled
def _cross_entropy(probabilities, labels, match, loss, ignore_index):
    for r in range(labels.size):
        if labels[r] == ignore_index:
            match[r], loss[r] = 1, 0
        else:
            chosen = probabilities[r, labels[r]]
            match[r] = chosen
            loss[r] = -np.log(chosen) if chosen > 0 else LARGEST


@compiled
def _cross_entropy_backward(match, labels, dloss, dprobabilities, ignore_index):
    dprobabilities[:] = 0
    for r in range(labels.size):
        if labels[r] != ignore_index:
            dprobabilities[r, labels[r]] = -dloss[r] / match[r]


@compiled
def _log_loss(predicted, labels, loss, epsilon):
    one = predicted.dtype.type(1)
    for i in range(predicted.size):
        p, y = predicted[i], labels[i]
        loss[i] = -y * log_of_normal(p + epsilon) - (one - y) * log_of_normal(one - p + epsilon)


@compiled
def _log_loss_backward(predicted, labels, dloss, dpredicted, epsilon):
    one = predicted.dtype.type(1)
    for i in range(predicted.size):
        p, y = predicted[i], labels[i]
        dpredicted[i] = dloss[i] * ((one - y) / (one - p + epsilon) - y / (p + epsilon))


@compiled
def _sigmoid_cross_entropy(x, labels, out, ignored):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(x.size):
        v = x[i]
        positive = zero if v < zero else v
        # log(1 + e) is less exact than log1p(e) by half a unit of 1: far below what a loss needs.
        made = positive - v * labels[i] + log_of_normal(one + exp_of_negative(-abs(v)))
        out[i] = zero if labels[i] == ignored else made


@compiled
def _sigmoid_cross_entropy_backward(x, labels, dout, dx, ignored):
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(x.size):
        v = x[i]
        small = exp_of_negative(-abs(v))
        sigmoid = (small if v < zero else one) / (one + small)
        dx[i] = zero if labels[i] == ignored else (sigmoid - labels[i]) * dout[i]
