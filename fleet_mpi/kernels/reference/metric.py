"""Counts behind the metrics: how many predictions hit, and the histograms of the area under the ROC curve."""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def count_hits(indices, labels, out):
    """How many rows of ``indices`` [rows, k] hold their label; ``out`` is an int array of one element."""
    hit = (indices == labels.reshape(-1, 1)).any(axis=1)
    out[...] = hit.sum().reshape(out.shape)


@kernel
def add_to_histograms(scores, labels, positive, negative):
    """Count each score of [0, 1] in bin int(score * (bins - 1)): ``positive`` for labels > 0, ``negative`` for 0.

    Returns the position of the first score outside [0, 1], or -1. Only the host looks for it.
    """
    xp = module_of(scores)
    top = positive.shape[0] - 1
    # In the scores' own precision, as in the original: a bin's edge is where that product rounds to.
    bins = xp.clip((scores * top).astype("int64"), 0, top)
    # bincount's weights would make floats of the counts: a bin beyond the last takes what does not belong.
    for wanted, counts in ((labels > 0, positive), (labels == 0, negative)):
        counts += xp.bincount(xp.where(wanted, bins, top + 1), minlength=top + 2)[:top + 1]
    return -1


@kernel
def add_to_sliding_histograms(scores, labels, positive, negative, steps):
    """Count as ``add_to_histograms``, over the last ``steps`` calls only; 0 steps: over all.

    The states are lines: a histogram per remembered call, their sum, and the number of calls.
    Returns the position of the first score outside [0, 1], or -1.
    """
    if steps == 0:
        return add_to_histograms.reference(scores, labels, positive, negative)
    xp = module_of(scores)
    bins = (positive.shape[0] - 1) // (steps + 1)
    fresh = xp.zeros((2, bins), positive.dtype)
    add_to_histograms.reference(scores, labels, fresh[0], fresh[1])
    for state, counts in ((positive, fresh[0]), (negative, fresh[1])):
        remembered, summed = state[:steps * bins].reshape(steps, bins), state[steps * bins:(steps + 1) * bins]
        # The place stays on the device, as an index array of one element.
        place = state[-1:] % steps
        summed += counts - xp.take(remembered, place, axis=0).reshape(bins)
        remembered[place] = counts.reshape(1, bins)
        state[-1:] += 1
    return -1


@kernel
def area_under_roc(positive, negative, out):
    """The area by trapezoids from the highest bin down, as a share of positives x negatives where both occur."""
    xp = module_of(positive)
    up = xp.cumsum(positive[::-1]).astype("float64")
    along = negative[::-1].astype("float64")
    area = (along * (up + up - positive[::-1])).sum() / 2.0
    whole = up[-1] * along.sum()
    out[...] = (area / xp.where(whole > 0.0, whole, 1.0)).reshape(out.shape)
