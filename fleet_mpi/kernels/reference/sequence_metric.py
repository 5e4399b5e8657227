"""How far decoded sequences are from their labels: edit distances, and chunks found.

A sequence is the elements of a line from ``begins[i]`` up to ``ends[i]``. The references compute on the host: they
decide element by element.
"""

import numpy as np

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel


@kernel
def edit_distances(hyps, refs, hyp_begins, hyp_ends, ref_begins, ref_ends, out):
    """The least number of insertions, deletions and substitutions that lead from each sequence to its reference."""
    one, other = to_host(hyps).tolist(), to_host(refs).tolist()
    spans = [to_host(part).tolist() for part in (hyp_begins, hyp_ends, ref_begins, ref_ends)]
    made = [_distance(one[a:b], other[c:d]) for a, b, c, d in zip(*spans)]
    out[...] = module_of(out).asarray(np.array(made, out.dtype))


def _distance(hyp, ref):
    before = list(range(len(ref) + 1))
    for i, token in enumerate(hyp, 1):
        row = [i]
        for j, wanted in enumerate(ref, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (token != wanted)))
        before = row
    return before[-1]


@kernel
def count_chunks(inferred, labels, begins, ends, types, tags, is_excluded, counts):
    """How many chunks were inferred, how many are labelled, how many are both with the same ends and type.

    A label is chunk type * number of tags + tag, or ``types`` * number of tags for no chunk. ``tags`` says which tag
    means begin, inside, end and single, -1 where the scheme has none; ``is_excluded`` [types] which types count not.
    """
    found, total = np.zeros(3, np.int64), int((to_host(tags) >= 0).sum()) or 1
    lines, skipped = [to_host(line).tolist() for line in (inferred, labels)], to_host(is_excluded).tolist()
    for begin, end in zip(to_host(begins).tolist(), to_host(ends).tolist()):
        sets = [{one for one in _chunks(line[begin:end], types, total, to_host(tags).tolist()) if not skipped[one[2]]}
                for line in lines]
        found += [len(sets[0]), len(sets[1]), len(sets[0] & sets[1])]
    counts[...] = module_of(counts).asarray(found)


def _chunks(line, types, total, tags):
    """(first, behind the last, type) of all chunks of one sequence."""
    start, before = None, (types, -1)
    for i, label in enumerate([*line, types * total]):
        now = divmod(label, total)
        if start is not None and _ends(before, now, types, tags):
            yield start, i, before[0]
            start = None
        if _begins(before, now, types, tags):
            start = i
        before = now


def _ends(before, now, types, tags):
    begin, _, end, single = tags
    if now[0] == types or now[0] != before[0]:
        return True
    return end == before[1] >= 0 or single == before[1] >= 0 or now[1] in (begin, single)


def _begins(before, now, types, tags):
    begin, _, end, single = tags
    if now[0] == types:
        return False
    return now[0] != before[0] or end == before[1] >= 0 or single == before[1] >= 0 or now[1] in (begin, single)
