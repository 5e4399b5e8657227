"""Linear-chain conditional random fields: the cost of labelled sequences, its gradient, and the best labels.

``emission`` is [rows, tags]; sequence i has the rows from begins[i] up to ends[i]. ``transition`` is [tags + 2, tags]:
the weight of starting with a tag, of ending with it, then from tag to tag. Labels are checked by the caller.
"""

import numpy as np

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel


@kernel
def crf_cost(emission, transition, labels, begins, ends, alpha, emission_exps, transition_exps, cost):
    """Minus the log likelihood of each sequence's labels; 0 for an empty one.

    ``alpha`` keeps the forward probabilities, each row brought to the sum 1, which is what keeps them from vanishing;
    ``emission_exps`` is e^(emission - the row's largest), ``transition_exps`` e^transition.
    """
    xp, largest = module_of(emission), emission.max(axis=1)
    emission_exps[...] = xp.exp(emission - largest.reshape(-1, 1))
    transition_exps[...] = xp.exp(transition)
    alpha.fill(0)
    for i, (begin, end) in enumerate(_pairs(begins, ends)):
        total, before = cost[i:i + 1], transition_exps[0]
        total.fill(0)
        for row in range(begin, end):
            made = before * emission_exps[row]
            scale = made.sum().reshape(1)
            alpha[row] = made / scale
            total += xp.log(scale) + largest[row:row + 1]
            before = alpha[row] @ transition_exps[2:]
        if end > begin:
            total += xp.log((alpha[end - 1] * transition_exps[1]).sum().reshape(1))
            total -= _score(emission, transition, labels[begin:end], begin, end)


def _score(emission, transition, labels, begin, end):
    """What the labels of one sequence weigh."""
    xp = module_of(emission)
    ends = transition[0][labels[:1]] + transition[1][labels[-1:]]
    emitted = emission[xp.arange(begin, end), labels].sum()
    return ends + emitted + transition[labels[:-1] + 2, labels[1:]].sum()


@kernel
def crf_cost_grad(emission_exps, transition_exps, alpha, labels, begins, ends, dcost, scratch, demission, dtransition):
    """Probabilities minus what the labels say, times ``dcost``: of tags, and of pairs of tags.

    ``scratch`` is as alpha: it gets the backward probabilities.
    """
    demission.fill(0)
    dtransition.fill(0)
    for i, (begin, end) in enumerate(_pairs(begins, ends)):
        if end > begin:
            _sequence_grad(emission_exps, transition_exps, alpha, labels, begin, end, dcost[i:i + 1], scratch,
                           demission,
                           dtransition)


def _sequence_grad(x, w, alpha, labels, begin, end, share, beta, demission, dtransition):
    after = w[1]
    for row in range(end - 1, begin - 1, -1):
        beta[row] = after / after.sum()
        after = w[2:] @ (x[row] * beta[row])
        both = alpha[row] * beta[row]
        demission[row] = both / both.sum() * share
        demission[row:row + 1, labels[row:row + 1]] -= share
        if row > begin:
            pairs = alpha[row - 1].reshape(-1, 1) * w[2:] * (x[row] * beta[row])
            dtransition[2:] += pairs / pairs.sum() * share
            dtransition[labels[row - 1:row] + 2, labels[row:row + 1]] -= share
    dtransition[0] += demission[begin]
    dtransition[1] += demission[end - 1]


@kernel
def crf_best_tags(emission, transition, begins, ends, path):
    """The labels that weigh most (Viterbi); of equal ones the lower tag."""
    xp = module_of(emission)
    path.fill(0)
    for begin, end in _pairs(begins, ends):
        if begin == end:
            continue
        score, came_from = transition[0] + emission[begin], []
        for row in range(begin + 1, end):
            from_each = score.reshape(-1, 1) + transition[2:]
            came_from.append(to_host(from_each.argmax(axis=0)))
            score = from_each.max(axis=0) + emission[row]
        tag = int(to_host((score + transition[1]).argmax().reshape(1))[0])
        tags = [tag]
        for origin in reversed(came_from):
            tag = int(origin[tag])
            tags.append(tag)
        path[begin:end] = xp.asarray(np.array(tags[::-1], np.int64))


def _pairs(begins, ends):
    return zip(to_host(begins).tolist(), to_host(ends).tolist())
