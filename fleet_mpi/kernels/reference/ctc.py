"""Connectionist temporal classification (Graves et al. 2006): the cost of labels whose places are not known.

Row t of sequence i is ``starts[i] + t * stride`` of ``logits`` [rows, classes], for ``lengths[i]`` rows; its labels are
those from ``label_begins[i]`` up to ``label_ends[i]``. Sums are of logarithms, in float64.
"""

import numpy as np

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel


@kernel
def ctc_cost(logits, labels, starts, stride, lengths, label_begins, label_ends, blank, cost, dlogits):
    """Minus the log of the summed probability of all ways to emit the labels, and its gradient.

    Both are 0 where a sequence is too short for its labels (repeated ones need a blank between them), as in warp-ctc.
    """
    xp = module_of(logits)
    dlogits.fill(0)
    spans = zip(*(to_host(one).tolist() for one in (starts, lengths, label_begins, label_ends)))
    host_labels = to_host(labels)
    for i, (start, length, begin, end) in enumerate(spans):
        rows = slice(start, start + (length - 1) * stride + 1, stride) if length else slice(0, 0)
        states = _states(host_labels[begin:end], blank)
        if length < needed(host_labels[begin:end]) or not length:
            cost[i:i + 1] = 0.0
            continue
        log_p = _log_softmax(logits[rows].astype("float64"))
        total, shares = _forward_backward(xp, log_p, states)
        cost[i:i + 1] = -total.astype(cost.dtype)
        chosen = xp.asarray(np.eye(logits.shape[1])[states])
        dlogits[rows] = (xp.exp(log_p) - shares @ chosen).astype(dlogits.dtype)


def needed(labels):
    """The fewest rows that labels fit into: one each, and one between equal neighbours."""
    return len(labels) + int((labels[1:] == labels[:-1]).sum())


def _states(labels, blank):
    """The labels with a blank before, between and behind."""
    states = np.full(2 * len(labels) + 1, blank, np.int64)
    states[1::2] = labels
    return states


def _log_softmax(x):
    xp = module_of(x)
    shifted = x - x.max(axis=1).reshape(-1, 1)
    return shifted - xp.log(xp.exp(shifted).sum(axis=1)).reshape(-1, 1)


def _forward_backward(xp, log_p, states):
    """(log of the whole probability as [1], the probability of being in each state at each row)."""
    skips = np.zeros(len(states), bool)
    skips[2:] = (states[2:] != states[:-2]) & (np.arange(2, len(states)) % 2 == 1)
    emitted = log_p[:, xp.asarray(states)]
    back_skips = np.append(skips[2:], [False, False])[:len(states)]
    ahead = _walk(xp, emitted, xp.asarray(skips))
    behind = _walk(xp, emitted[::-1, ::-1], xp.asarray(back_skips[::-1].copy()))[::-1, ::-1]
    total = xp.logaddexp(ahead[-1, -1:], ahead[-1, -2:-1]) if len(states) > 1 else ahead[-1, -1:]
    return total, xp.exp(ahead + behind - emitted - total)


def _walk(xp, emitted, skips):
    """The log probability of all ways to each state, row by row."""
    out = xp.full(emitted.shape, -np.inf, "float64")
    out[0, :2] = emitted[0, :2]
    for t in range(1, len(emitted)):
        before = out[t - 1]
        one = xp.concatenate([xp.full((1,), -np.inf), before[:-1]])
        two = xp.concatenate([xp.full((2,), -np.inf), before[:-2]])[:len(before)]
        out[t] = xp.logaddexp(xp.logaddexp(before, one), xp.where(skips, two, -np.inf)) + emitted[t]
    return out
