"""The softmax kernels for host arrays: each row is read and written while it is in the cache.

Sums and maxima run in lanes that are put together in a fixed order; rows do not know of each other, so
any number of threads gives the same bits. Arrays with the classes in the middle take the references.
"""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.elementary import exp_of_negative, log_of_normal
from fleet_mpi.kernels.reference import softmax as plain
from fleet_mpi.kernels.threads import for_each, pieces

LANES = 64
LEAST_PIECE = 32768  # numbers; a piece of fewer is done before another thread wakes up
LOWEST = np.float32(plain.LOWEST)


def softmax(x, out):
    """Three passes over a row in the cache."""
    if not _usable(x, out):
        return plain.softmax.reference(x, out)
    _over_rows(x, lambda start, stop: _softmax(x, out, start, stop))


def softmax_backward(out, dout, dx):
    """Two passes over a row in the cache."""
    if not _usable(out, dout, dx):
        return plain.softmax_backward.reference(out, dout, dx)
    _over_rows(out, lambda start, stop: _softmax_backward(out, dout, dx, start, stop))


def log_softmax(x, out):
    """As softmax, without the division."""
    if not _usable(x, out):
        return plain.log_softmax.reference(x, out)
    _over_rows(x, lambda start, stop: _log_softmax(x, out, start, stop))


def log_softmax_backward(out, dout, dx):
    """Two passes over a row in the cache."""
    if not _usable(out, dout, dx):
        return plain.log_softmax_backward.reference(out, dout, dx)
    _over_rows(out, lambda start, stop: _log_softmax_backward(out, dout, dx, start, stop))


def softmax_cross_entropy(logits, labels, probabilities, loss, ignore_index):
    """Labels are checked first, so that no bad one is used as an index."""
    bad = _first_unknown(labels.reshape(-1), logits.shape[1], ignore_index)
    if bad >= 0:
        return bad
    if not _usable(logits, probabilities, loss):
        return plain.softmax_cross_entropy.reference(logits, labels, probabilities, loss, ignore_index)
    _over_rows(logits, lambda start, stop: _cross_entropy(
        logits, labels, probabilities, loss, ignore_index, start, stop))
    return -1


def softmax_cross_entropy_backward(probabilities, labels, dloss, dlogits, ignore_index):
    """One pass, and one element more per row."""
    if not _usable(probabilities, dloss, dlogits):
        return plain.softmax_cross_entropy_backward.reference(probabilities, labels, dloss, dlogits, ignore_index)
    _over_rows(probabilities, lambda start, stop: _cross_entropy_backward(
        probabilities, labels, dloss, dlogits, ignore_index, start, stop))


def soft_cross_entropy(logits, targets, probabilities, loss):
    """As softmax, and one pass over the targets."""
    if not _usable(logits, targets, probabilities, loss):
        return plain.soft_cross_entropy.reference(logits, targets, probabilities, loss)
    _over_rows(logits, lambda start, stop: _soft_cross_entropy(logits, targets, probabilities, loss, start, stop))


def soft_cross_entropy_backward(probabilities, targets, dloss, dlogits):
    """One pass."""
    if not _usable(probabilities, targets, dloss, dlogits):
        return plain.soft_cross_entropy_backward.reference(probabilities, targets, dloss, dlogits)
    _over_rows(probabilities, lambda start, stop: _soft_cross_entropy_backward(
        probabilities, targets, dloss, dlogits, start, stop))


def _usable(first, *others):
    return first.ndim == 2 and first.dtype.char in "fd" and all(
        array.dtype == first.dtype and array.flags.c_contiguous for array in (first, *others))


def _over_rows(x, work):
    rows, columns = x.shape
    if x.size < 2 * LEAST_PIECE or rows == 1:
        return work(0, rows)
    parts = pieces(rows, max(LEAST_PIECE // columns, 1))
    for_each(lambda i: work(parts[i].start, parts[i].stop), len(parts))


@compiled
def _first_unknown(labels, classes, ignore_index):
    for i in range(labels.size):
        if (labels[i] < 0 or labels[i] >= classes) and labels[i] != ignore_index:
            return i
    return -1


@compiled
def _softmax(x, out, start, stop):
    lanes = np.empty(_width(x.shape[1]), x.dtype)
    for r in range(start, stop):
        row, made = x[r], out[r]
        top = _max(row, lanes)
        for j in range(row.size):
            far = row[j] - top
            made[j] = exp_of_negative(LOWEST if far < LOWEST else far)
        total = _sum(made, lanes)
        for j in range(made.size):
            made[j] /= total


@compiled
def _softmax_backward(out, dout, dx, start, stop):
    lanes = np.empty(_width(out.shape[1]), out.dtype)
    for r in range(start, stop):
        row, given, made = out[r], dout[r], dx[r]
        along = _sum_of_products(row, given, lanes)
        for j in range(row.size):
            made[j] = (given[j] - along) * row[j]


@compiled
def _log_softmax(x, out, start, stop):
    lanes = np.empty(_width(x.shape[1]), x.dtype)
    for r in range(start, stop):
        row, made = x[r], out[r]
        top = _max(row, lanes)
        log_total = log_of_normal(_sum_of_exponentials(row, top, lanes))
        for j in range(row.size):
            made[j] = row[j] - top - log_total


@compiled
def _log_softmax_backward(out, dout, dx, start, stop):
    lanes = np.empty(_width(out.shape[1]), out.dtype)
    for r in range(start, stop):
        row, given, made = out[r], dout[r], dx[r]
        total = _sum(given, lanes)
        for j in range(row.size):
            made[j] = given[j] - exp_of_negative(row[j]) * total


@compiled
def _cross_entropy(logits, labels, probabilities, loss, ignore_index, start, stop):
    lanes = np.empty(_width(logits.shape[1]), logits.dtype)
    for r in range(start, stop):
        row, made = logits[r], probabilities[r]
        top = _max(row, lanes)
        # Before the row is overwritten: the probabilities may lie in the logits' memory.
        chosen = row[labels[r]] - top if labels[r] != ignore_index else top
        chosen = LOWEST if chosen < LOWEST else chosen
        for j in range(row.size):
            far = row[j] - top
            made[j] = exp_of_negative(LOWEST if far < LOWEST else far)
        total = _sum(made, lanes)
        for j in range(made.size):
            made[j] /= total
        loss[r] = log_of_normal(total) - chosen if labels[r] != ignore_index else 0


@compiled
def _cross_entropy_backward(probabilities, labels, dloss, dlogits, ignore_index, start, stop):
    for r in range(start, stop):
        row, made = probabilities[r], dlogits[r]
        share = dloss[r]
        if labels[r] == ignore_index:
            share *= 0
        for j in range(row.size):
            made[j] = row[j] * share
        if labels[r] != ignore_index:
            made[labels[r]] -= share


@compiled
def _soft_cross_entropy(logits, targets, probabilities, loss, start, stop):
    lanes = np.empty(_width(logits.shape[1]), logits.dtype)
    for r in range(start, stop):
        row, target, made = logits[r], targets[r], probabilities[r]
        top = _max(row, lanes)
        log_total = log_of_normal(_sum_of_exponentials(row, top, lanes))
        mass = _sum(target, lanes)
        if _min(row, lanes) - top < LOWEST:
            loss[r] = log_total * mass - _sum_of_clipped_products(row, top, target, lanes)
        else:
            loss[r] = (log_total + top) * mass - _sum_of_products(row, target, lanes)
        for j in range(row.size):
            far = row[j] - top
            made[j] = exp_of_negative(LOWEST if far < LOWEST else far)
        total = _sum(made, lanes)
        for j in range(made.size):
            made[j] /= total


@compiled
def _soft_cross_entropy_backward(probabilities, targets, dloss, dlogits, start, stop):
    for r in range(start, stop):
        row, target, made = probabilities[r], targets[r], dlogits[r]
        for j in range(row.size):
            made[j] = (row[j] - target[j]) * dloss[r]


@compiled
def _width(columns):
    """How many lanes pay: a power of two that short rows fill."""
    return LANES if columns >= LANES else 8 if columns >= 8 else 1


@compiled
def _max(row, lanes):
    """The largest number; number j goes to lane j % lanes.size, because a running maximum does not vectorise."""
    lanes[:] = row[0]
    for at in range(0, row.size, lanes.size):
        part = row[at:at + lanes.size]
        for j in range(part.size):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    top = lanes[0]
    for j in range(lanes.size):
        top = lanes[j] if lanes[j] > top else top
    return top


@compiled
def _min(row, lanes):
    """The smallest number, in lanes as ``_max``."""
    lanes[:] = row[0]
    for at in range(0, row.size, lanes.size):
        part = row[at:at + lanes.size]
        for j in range(part.size):
            lanes[j] = part[j] if part[j] < lanes[j] else lanes[j]
    low = lanes[0]
    for j in range(lanes.size):
        low = lanes[j] if lanes[j] < low else low
    return low


@compiled
def _sum(row, lanes):
    lanes[:] = 0
    for at in range(0, row.size, lanes.size):
        part = row[at:at + lanes.size]
        for j in range(part.size):
            lanes[j] += part[j]
    return _together(lanes)


@compiled
def _sum_of_products(row, other, lanes):
    lanes[:] = 0
    for at in range(0, row.size, lanes.size):
        part, partner = row[at:at + lanes.size], other[at:at + lanes.size]
        for j in range(part.size):
            lanes[j] += part[j] * partner[j]
    return _together(lanes)


@compiled
def _sum_of_clipped_products(row, top, other, lanes):
    lanes[:] = 0
    for at in range(0, row.size, lanes.size):
        part, partner = row[at:at + lanes.size], other[at:at + lanes.size]
        for j in range(part.size):
            far = part[j] - top
            lanes[j] += (LOWEST if far < LOWEST else far) * partner[j]
    return _together(lanes)


@compiled
def _sum_of_exponentials(row, top, lanes):
    lanes[:] = 0
    for at in range(0, row.size, lanes.size):
        part = row[at:at + lanes.size]
        for j in range(part.size):
            lanes[j] += exp_of_negative(part[j] - top)
    return _together(lanes)


@compiled
def _together(lanes):
    width = lanes.size // 2
    while width > 0:
        for j in range(width):
            lanes[j] += lanes[j + width]
        width //= 2
    return lanes[0]
