"""The CTC kernel for host arrays."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def ctc_cost(logits, labels, starts, stride, lengths, label_begins, label_ends, blank, cost, dlogits):
    """One sequence after the other, with two tables as large as it needs."""
    dlogits[:] = 0
    for i in range(starts.size):
        own = labels[label_begins[i]:label_ends[i]]
        needed = own.size
        for j in range(1, own.size):
            needed += own[j] == own[j - 1]
        cost[i] = 0
        if lengths[i] > 0 and lengths[i] >= needed:
            cost[i] = _sequence(logits, own, starts[i], stride, lengths[i], blank, dlogits)


@compiled
def _sequence(logits, labels, start, stride, length, blank, dlogits):
    states, log_p = 2 * labels.size + 1, np.empty((length, logits.shape[1]))
    for t in range(length):
        _log_softmax(logits[start + t * stride], log_p[t])
    ahead, behind = np.full((length, states), -np.inf), np.full((length, states), -np.inf)
    ahead[0, 0] = log_p[0, blank]
    behind[length - 1, states - 1] = log_p[length - 1, blank]
    if states > 1:
        ahead[0, 1] = log_p[0, labels[0]]
        behind[length - 1, states - 2] = log_p[length - 1, labels[labels.size - 1]]
    for t in range(1, length):
        for s in range(states):
            ahead[t, s] = _arriving(ahead[t - 1], labels, s, -1) + log_p[t, _class(labels, s, blank)]
    for t in range(length - 2, -1, -1):
        for s in range(states):
            behind[t, s] = _arriving(behind[t + 1], labels, s, 1) + log_p[t, _class(labels, s, blank)]
    total = ahead[length - 1, states - 1]
    if states > 1:
        total = _log_sum(total, ahead[length - 1, states - 2])
    for t in range(length):
        row = dlogits[start + t * stride]
        for c in range(row.size):
            row[c] = np.exp(log_p[t, c])
        for s in range(states):
            c = _class(labels, s, blank)
            row[c] -= np.exp(ahead[t, s] + behind[t, s] - log_p[t, c] - total)
    return -total


@compiled
def _class(labels, state, blank):
    return labels[state // 2] if state % 2 else blank


@compiled
def _arriving(before, labels, state, step):
    """What comes to a state from itself, its neighbour, and the label behind that if it is another one."""
    made, states = before[state], before.size
    if 0 <= state + step < states:
        made = _log_sum(made, before[state + step])
    if state % 2 and 0 <= state + 2 * step < states and labels[state // 2] != labels[state // 2 + step]:
        made = _log_sum(made, before[state + 2 * step])
    return made


@compiled
def _log_sum(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@compiled
def _log_softmax(x, out):
    largest = x[0]
    for c in range(1, x.size):
        largest = max(largest, x[c])
    total = 0.0
    for c in range(x.size):
        out[c] = x[c] - largest
        total += np.exp(out[c])
    total = np.log(total)
    for c in range(x.size):
        out[c] -= total
