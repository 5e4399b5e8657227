"""The kernels of sequence metrics for host arrays."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def edit_distances(hyps, refs, hyp_begins, hyp_ends, ref_begins, ref_ends, out):
    """One row of the table is kept, as long as the longest reference needs."""
    longest = 0
    for i in range(ref_begins.size):
        longest = max(longest, ref_ends[i] - ref_begins[i])
    row = np.empty(longest + 1, np.int64)
    for i in range(hyp_begins.size):
        out[i] = _distance(hyps[hyp_begins[i]:hyp_ends[i]], refs[ref_begins[i]:ref_ends[i]], row)


@compiled
def _distance(hyp, ref, row):
    for j in range(ref.size + 1):
        row[j] = j
    for i in range(hyp.size):
        diagonal = row[0]
        row[0] = i + 1
        for j in range(ref.size):
            kept = diagonal + (hyp[i] != ref[j])
            diagonal = row[j + 1]
            row[j + 1] = min(min(diagonal + 1, row[j] + 1), kept)
    return row[ref.size]


@compiled
def count_chunks(inferred, labels, begins, ends, types, tags, is_excluded, counts):
    """Both lines at once: chunks that end together are the same if they began together."""
    total = 0
    for tag in tags:
        total += tag >= 0
    total = max(total, 1)
    counts[:] = 0
    none = types * total
    for k in range(begins.size):
        start, other, before, wanted = -1, -1, none, none
        for i in range(begins[k], ends[k] + 1):
            now, label = (inferred[i], labels[i]) if i < ends[k] else (none, none)
            is_end = start >= 0 and _turns(before, now, types, total, tags)
            other_ends = other >= 0 and _turns(wanted, label, types, total, tags)
            kind, other_kind = before // total, wanted // total
            if is_end and not is_excluded[kind]:
                counts[0] += 1
            if other_ends and not is_excluded[other_kind]:
                counts[1] += 1
                if is_end and start == other and kind == other_kind:
                    counts[2] += 1
            start = i if now // total != types and _turns(before, now, types, total, tags) else -1 if is_end else start
            other = i if label // total != types and _turns(wanted, label, types, total, tags) \
                else -1 if other_ends else other
            before, wanted = now, label


@compiled
def _turns(before, now, types, total, tags):
    """Whether a chunk that may lead up to here ends, and one that may lead on begins."""
    if now // total != before // total:
        return True
    if now // total == types:
        return False
    tag, old = now % total, before % total
    return (tags[2] >= 0 and old == tags[2]) or (tags[3] >= 0 and old == tags[3]) or (tags[0] >= 0 and tag == tags[0]) \
        or (tags[3] >= 0 and tag == tags[3])
