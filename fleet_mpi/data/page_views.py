"""Samples of one page view together: batches of whole views, and who stands where in them.

The matrix of a batch (``rank_offset``) has a row for each sample: its rank, 1 to 3, or -1; then for each of the ranks 1
to 3 that rank and the row of the sample of the same view that has it, or -1. Only items of the kinds 222 and 223 have
ranks, as in the original; ``rank_attention`` reads it.
"""

import numpy as np

from fleet_mpi.data.line_keys import KIND, RANK, SEARCH, column_of

JOIN, UPDATE, UPDATE_TEST, JOIN_TEST = 1, 0, 2, 3
BY_VIEW = (JOIN, JOIN_TEST)

_RANKS = 3
_RANKED_KINDS = (222, 223)


def of(records, by_search, random_order):
    """The page views of samples, in random order.

    Args:
        by_search: samples of one search are one view; else each is one of its own.
        random_order: gives a random order of so many.
    """
    search = column_of(records, SEARCH)
    if not by_search:
        order = random_order(len(records))
        return PageViews(records.take(order), np.ones(len(records), np.int64))
    _, view, lengths = np.unique(search, return_inverse=True, return_counts=True)
    places = np.empty(len(lengths), np.int64)
    shuffled = random_order(len(lengths))
    places[shuffled] = np.arange(len(lengths))
    return PageViews(records.take(np.argsort(places[view], kind="stable")), lengths[shuffled])


class PageViews:
    """Samples in the order of their views, and how many each view has."""

    def __init__(self, records, lengths):
        self.records, self.lengths = records, lengths

    def batches(self, views, rank_offset):
        """Yield the feed of every so many views, with the matrix under the name ``rank_offset`` where there is one."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        for start in range(0, len(self.lengths), views):
            lengths = self.lengths[start:start + views]
            records = self.records.part(ends[start], ends[start + len(lengths)])
            feed = records.feed()
            if rank_offset:
                feed[rank_offset] = rank_matrix(column_of(records, KIND), column_of(records, RANK), lengths)
            yield feed


def rank_matrix(kinds, ranks, lengths):
    """The matrix of some views, int32; see the module's text."""
    ranked = np.isin(kinds, _RANKED_KINDS) & (ranks >= 1) & (ranks <= _RANKS)
    matrix = np.full((len(ranks), 2 * _RANKS + 1), -1, np.int32)
    matrix[ranked, 0] = ranks[ranked]
    view = np.repeat(np.arange(len(lengths)), lengths)
    for rank in range(1, _RANKS + 1):
        holder = np.full(len(lengths), -1)
        rows = np.flatnonzero(ranked & (ranks == rank))
        holder[view[rows]] = rows
        seen = ranked & (holder[view] >= 0)
        matrix[seen, 2 * rank - 1] = rank
        matrix[seen, 2 * rank] = holder[view[seen]]
    return matrix
