"""The CRF kernels for host arrays: no array is made on the way."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def crf_cost(emission, transition, labels, begins, ends, alpha, emission_exps, transition_exps, cost):
    """Sequence by sequence, row by row."""
    tags, zero = emission.shape[1], emission.dtype.type(0)
    for j in range(transition.shape[0]):
        for t in range(tags):
            transition_exps[j, t] = np.exp(transition[j, t])
    alpha[:] = 0
    emission_exps[:] = 0
    for i in range(begins.size):
        begin, end, total = begins[i], ends[i], zero
        for row in range(begin, end):
            largest = emission[row, 0]
            for t in range(1, tags):
                largest = max(largest, emission[row, t])
            scale = zero
            for t in range(tags):
                emission_exps[row, t] = np.exp(emission[row, t] - largest)
                before = transition_exps[0, t]
                if row > begin:
                    before = zero
                    for s in range(tags):
                        before += alpha[row - 1, s] * transition_exps[2 + s, t]
                alpha[row, t] = before * emission_exps[row, t]
                scale += alpha[row, t]
            for t in range(tags):
                alpha[row, t] /= scale
            total += np.log(scale) + largest - emission[row, labels[row]]
            if row > begin:
                total -= transition[2 + labels[row - 1], labels[row]]
        if end > begin:
            last = zero
            for t in range(tags):
                last += alpha[end - 1, t] * transition_exps[1, t]
            total += np.log(last) - transition[0, labels[begin]] - transition[1, labels[end - 1]]
        cost[i] = total


@compiled
def crf_cost_grad(emission_exps, transition_exps, alpha, labels, begins, ends, dcost, scratch, demission, dtransition):
    """From each sequence's end to its beginning."""
    demission[:] = 0
    dtransition[:] = 0
    for i in range(begins.size):
        begin, end, share = begins[i], ends[i], dcost[i]
        for row in range(end - 1, begin - 1, -1):
            _beta(emission_exps, transition_exps, row, end, scratch)
            _of_tags(alpha[row], scratch[row], share, demission[row])
            demission[row, labels[row]] -= share
            if row > begin:
                _of_pairs(alpha[row - 1], transition_exps, emission_exps[row], scratch[row], share, dtransition)
                dtransition[2 + labels[row - 1], labels[row]] -= share
        if end > begin:
            for t in range(demission.shape[1]):
                dtransition[0, t] += demission[begin, t]
                dtransition[1, t] += demission[end - 1, t]


@compiled
def _beta(x, w, row, end, beta):
    tags, total = x.shape[1], x.dtype.type(0)
    for t in range(tags):
        made = w[1, t]
        if row < end - 1:
            made = x.dtype.type(0)
            for s in range(tags):
                made += w[2 + t, s] * x[row + 1, s] * beta[row + 1, s]
        beta[row, t] = made
        total += made
    for t in range(tags):
        beta[row, t] /= total


@compiled
def _of_tags(alpha, beta, share, out):
    total = alpha.dtype.type(0)
    for t in range(out.size):
        out[t] = alpha[t] * beta[t]
        total += out[t]
    for t in range(out.size):
        out[t] = out[t] / total * share


@compiled
def _of_pairs(before, w, x, beta, share, dtransition):
    tags, total = x.size, x.dtype.type(0)
    for s in range(tags):
        for t in range(tags):
            total += before[s] * w[2 + s, t] * x[t] * beta[t]
    for s in range(tags):
        for t in range(tags):
            dtransition[2 + s, t] += before[s] * w[2 + s, t] * x[t] * beta[t] / total * share


@compiled
def crf_best_tags(emission, transition, begins, ends, path):
    """A table of origins for the longest sequence serves all."""
    tags, longest = emission.shape[1], 1
    path[:] = 0
    for i in range(begins.size):
        longest = max(longest, ends[i] - begins[i])
    origin, score = np.empty((longest, tags), np.int64), np.empty((2, tags), emission.dtype)
    for i in range(begins.size):
        begin, end = begins[i], ends[i]
        for row in range(begin, end):
            now, before = (row - begin) % 2, (row - begin + 1) % 2
            for t in range(tags):
                best, most = 0, transition[0, t]
                if row > begin:
                    most = score[before, 0] + transition[2, t]
                    for s in range(1, tags):
                        made = score[before, s] + transition[2 + s, t]
                        if made > most:
                            best, most = s, made
                origin[row - begin, t] = best
                score[now, t] = most + emission[row, t]
        if end > begin:
            _walk_back(score[(end - 1 - begin) % 2] + transition[1], origin, path[begin:end])


@compiled
def _walk_back(score, origin, path):
    tag = np.argmax(score)
    for k in range(path.size - 1, -1, -1):
        path[k] = tag
        tag = origin[k, tag]
