"""One step of a beam search, and reading the sentences out of all its steps.

Rows are prefixes (unfinished sentences). A step's LoD has two levels: source -> the prefixes it had before
the step, prefix -> the rows chosen to continue it; so the LoDs of all steps hold the tree of the search.
Both run on the host: a step has few rows, and their number is known only when it is done.
"""

from bisect import bisect_right

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph import lod as lods
from fleet_mpi.program.graph.registry import Meta, op

TWO_LEVELS = ((), ())


@op("beam_search", "pre_ids pre_scores ids? scores", "selected_ids selected_scores parent_idx?", dynamic=True,
    attrs={"level": 0, "beam_size": 1, "end_id": 0, "is_accumulated": True})
class BeamSearch:
    """Of each source's continuations the ``beam_size`` with the best scores, grouped by prefix.

    A prefix that ended stays as it is and counts as one continuation. A source whose best are all such
    gets no rows any more. Of equal scores the later prefix wins, then the earlier candidate.
    """

    def infer(k):
        """While building only: how many rows there are depends on the scores."""
        k.set("selected_ids", (-1, 1), k.dtype("pre_ids"), TWO_LEVELS)
        k.set("selected_scores", (-1, 1), k.dtype("scores"), TWO_LEVELS)
        k.set("parent_idx", (-1,), np.int32, ())

    def run(k):
        """Choose on the host, then hand the rows to the device."""
        def run():
            level = _sources(k)
            candidates = Candidates(*(None if value is None else arrays.to_host(value) for value in (
                k["pre_ids"], k["pre_scores"], k["ids"], k["scores"])), k.attr("end_id"), k.attr("is_accumulated"))
            parents, columns = candidates.best(level, k.attr("beam_size"))
            counts = np.bincount(parents, minlength=level[-1])
            lod = (level, lod_rows.level_of(counts))
            _put(k, "selected_ids", candidates.ids[parents, columns].reshape(-1, 1), lod)
            _put(k, "selected_scores", candidates.scores[parents, columns].reshape(-1, 1), lod)
            _put(k, "parent_idx", parents.astype(np.int32), ())
        return run


def _put(k, slot, host, lod):
    k.put(slot, arrays.to_module(np.ascontiguousarray(host), k.xp), meta=Meta(host.shape, host.dtype, lod))


def _sources(k):
    """Each source's prefixes as a level of offsets, from the scores' LoD or, where that was lost, the ids'."""
    depth = k.attr("level")
    for slot in ("scores", "pre_ids", "pre_scores"):
        lod, rows = k.lod(slot), k.shape(slot)[0]
        if len(lod) > depth and lods.problem(lod, rows) is None:
            return lods.row_offsets(lod, depth)
    k.fail(f"expected scores or pre_ids with more than {depth} LoD level(s), got {k.lod('scores')} and "
           f"{k.lod('pre_ids')}: feed the first ids and scores with two levels, [[1] * batch, [1] * batch], "
           f"and give the state theirs with lod_reset")


class Candidates:
    """All continuations of a step: ids and scores [prefixes, candidates]; -inf where there is none."""

    def __init__(self, pre_ids, pre_scores, ids, scores, end_id, is_accumulated):
        pre_scores = pre_scores.reshape(-1, 1)
        self.ended = pre_ids.reshape(-1) == end_id
        self.scores = scores.copy() if is_accumulated else (pre_scores + np.log(scores)).astype(scores.dtype)
        self.ids = np.arange(scores.shape[1])[None].repeat(len(scores), 0) if ids is None else ids.copy()
        self.ids = self.ids.astype(pre_ids.dtype)
        self.exists = np.ones(scores.shape, bool)
        self.exists[self.ended, 1:] = False
        self.ids[self.ended, 0] = end_id
        self.scores[self.ended, :1] = pre_scores[self.ended]
        self.end_id = end_id

    def best(self, level, beam_size):
        """(prefix, column) of the chosen candidates of all sources, by prefix, best first within each."""
        nothing = [(np.zeros(0, np.int64),) * 2]
        found = nothing + [self._best_of(begin, end, beam_size) for begin, end in zip(level, level[1:])]
        return [np.concatenate(part) for part in zip(*found)]

    def _best_of(self, begin, end, beam_size):
        rows, columns = np.nonzero(self.exists[begin:end])
        rows += begin
        order = np.lexsort((columns, -rows, -self.scores[rows, columns]))[:beam_size]
        rows, columns = rows[order], columns[order]
        if (self.ended[rows] & (self.ids[rows, columns] == self.end_id)).all():
            return rows[:0], columns[:0]
        by_prefix = np.argsort(rows, kind="stable")
        return rows[by_prefix], columns[by_prefix]


@op("beam_search_decode", "Ids Scores", "SentenceIds SentenceScores", dynamic=True,
    attrs={"beam_size": 1, "end_id": 0})
class BeamSearchDecode:
    """The sentences that the steps of a search lead to: for each source, best first, with all scores on the way.

    The LoD is source -> sentences -> words. A sentence ends with its first ``end_id``.
    """

    def infer(k):
        k.set("SentenceIds", (-1,), np.int64, TWO_LEVELS)
        k.set("SentenceScores", (-1,), k.dtype("Scores"), TWO_LEVELS)

    def run(k):
        """Walk back from the last step."""
        return lambda: _decode(k)


def _decode(k):
    steps = _steps(k, k["Ids"], k["Scores"])
    sources = len(steps[0][2][0]) - 1
    found = [sentences(steps, source, k.attr("end_id")) for source in range(sources)]
    lod = lods.from_lengths([[len(some) for some in found], [len(words) for some in found for words, _ in some]])
    all_words = [word for some in found for words, _ in some for word in words]
    all_scores = [score for some in found for _, scores in some for score in scores]
    first_ids, first_scores, _ = steps[0]
    _put(k, "SentenceIds", np.array(all_words, first_ids.dtype), lod)
    _put(k, "SentenceScores", np.array(all_scores, first_scores.dtype), lod)


def _steps(k, ids, scores):
    """(ids, scores, LoD) of each step, on the host."""
    if not ids or len(ids) != len(scores):
        k.fail(f"expected equally many steps of ids and scores, at least one, got {len(ids)} and {len(scores)}")
    steps = []
    for number, (some_ids, some_scores) in enumerate(zip(ids, scores)):
        if len(some_ids.lod_offsets) != 2:
            k.fail(f"step {number}: expected ids with two LoD levels, as beam_search gives them, got "
                   f"{some_ids.lod_offsets}")
        steps.append((arrays.to_host(some_ids.array).reshape(-1), arrays.to_host(some_scores.array).reshape(-1),
                      some_ids.lod_offsets))
    return steps


def sentences(steps, source, end_id):
    """[(words, scores)] of one source, best last score first; ``steps`` are (ids, scores, LoD)."""
    walks = []
    for ids, scores, (sources, prefixes) in reversed(steps):
        begin, end = sources[source], sources[source + 1]
        # The source ended at this step, or it is the last: a sentence for each row it has.
        walks = walks or [Walk(row) for row in range(prefixes[begin], prefixes[end])]
        for walk in walks:
            walk.step(ids, scores, prefixes, end_id)
    walks.sort(key=lambda walk: -walk.scores[0])
    return [(walk.words[::-1], walk.scores[::-1]) for walk in walks]


class Walk:
    """A sentence read from its end to its start."""

    def __init__(self, row):
        self.row, self.words, self.scores = row, [], []

    def step(self, ids, scores, prefixes, end_id):
        """Take the word of the present row, unless it repeats the end; then go to the prefix it continues."""
        if not self.words or ids[self.row] != end_id:
            self.words.append(int(ids[self.row]))
            self.scores.append(float(scores[self.row]))
        self.row = bisect_right(prefixes, self.row) - 1
