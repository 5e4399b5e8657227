"""The metric kernels for host arrays."""

from fleet_mpi.kernels.numba.compiling import compiled


def count_hits(indices, labels, out):
    """Stops at a row's first hit."""
    out[...] = _count_hits(indices, labels)


def add_to_histograms(scores, labels, positive, negative):
    """Scores are checked first: a bad one must leave the histograms as they were."""
    bad = _first_outside(scores)
    if bad < 0:
        _add(scores, labels, positive, negative)
    return bad


def add_to_sliding_histograms(scores, labels, positive, negative, steps):
    """The oldest call's histogram makes room for this one's."""
    if steps == 0:
        return add_to_histograms(scores, labels, positive, negative)
    bad = _first_outside(scores)
    if bad < 0:
        bins = (positive.size - 1) // (steps + 1)
        _forget(positive, bins, steps)
        _forget(negative, bins, steps)
        place = int(positive[-1]) % steps
        here = slice(place * bins, (place + 1) * bins)
        _add(scores, labels, positive[here], negative[here])
        _remember(positive, bins, steps)
        _remember(negative, bins, steps)
    return bad


def area_under_roc(positive, negative, out):
    """One pass over both histograms."""
    out[...] = _area(positive, negative)


@compiled
def _count_hits(indices, labels):
    hits = 0
    for r in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            if indices[r, j] == labels[r]:
                hits += 1
                break
    return hits


@compiled
def _first_outside(scores):
    for i in range(scores.size):
        if not (scores[i] >= 0 and scores[i] <= 1):
            return i
    return -1


@compiled
def _add(scores, labels, positive, negative):
    top = scores.dtype.type(positive.size - 1)
    for i in range(scores.size):
        at = int(scores[i] * top)
        if labels[i] > 0:
            positive[at] += 1
        elif labels[i] == 0:
            negative[at] += 1


@compiled
def _forget(state, bins, steps):
    start, total = (state[-1] % steps) * bins, steps * bins
    for i in range(bins):
        state[total + i] -= state[start + i]
        state[start + i] = 0


@compiled
def _remember(state, bins, steps):
    start, total = (state[-1] % steps) * bins, steps * bins
    for i in range(bins):
        state[total + i] += state[start + i]
    state[-1] += 1


@compiled
def _area(positive, negative):
    area, up, along = 0.0, 0.0, 0.0
    for i in range(positive.size - 1, -1, -1):
        before = up
        up += positive[i]
        along += negative[i]
        area += negative[i] * (up + before) / 2.0
    return area / (up * along) if up > 0 and along > 0 else area
