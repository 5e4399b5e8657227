"""Samples with the same line id made one: each brings the slots that the others lack.

As the original does: of a dense slot the last values that are not all 0 count; a slot with LoD may have values in one
of the samples only (0 is padding), else all samples of that id are dropped.
"""

import math

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data.line_keys import LINE_ID, column_of
from fleet_mpi.data.slots import Column, Records


def merged_by_line(records, merge_size):
    """One sample for each line id that ``merge_size`` samples have (0: any number), in the order of their first
    ones."""
    if not len(records):
        return records
    _, firsts, group, sizes = np.unique(column_of(records, LINE_ID), return_index=True, return_inverse=True,
                                        return_counts=True)
    keeps = (sizes == merge_size) if merge_size > 0 else np.ones(len(sizes), bool)
    chosen = []
    for slot, column in zip(records.slots, records.columns):
        filled = np.flatnonzero(_is_filled(column))
        if slot.is_ragged:
            keeps &= np.bincount(group[filled], minlength=len(sizes)) <= 1
        best = firsts.copy()
        best[group[filled]] = filled  # numpy keeps the last one
        chosen.append(best)
    order = np.flatnonzero(keeps)[np.argsort(firsts[keeps], kind="stable")]
    _say_what_was_dropped(len(records), int(sizes[~keeps].sum()), merge_size)
    return Records(records.slots, [_taken(slot, column, best[order])
                                   for slot, column, best in zip(records.slots, records.columns, chosen)])


def _is_filled(column):
    """For each sample whether one of its values is not 0."""
    return np.add.reduceat(column.values != 0, np.cumsum(column.lengths) - column.lengths) > 0


def _taken(slot, column, order):
    taken = column.take(order)
    return _without_padding(taken) if slot.is_ragged and math.prod(slot.inner) == 1 else taken


def _without_padding(column):
    """Without the values that are 0; a sample that has no others keeps one."""
    kept = column.values != 0
    starts = np.cumsum(column.lengths) - column.lengths
    if len(starts):
        kept[starts[np.add.reduceat(kept, starts) == 0]] = True
    counts = np.add.reduceat(kept.astype(np.int64), starts) if len(starts) else column.lengths
    return Column(column.values[kept], counts)


def _say_what_was_dropped(count, dropped, merge_size):
    if dropped:
        notices.log().warning("merge_by_lineid: %d of %d samples are dropped: their line ids do not come %s, or "
                              "several of them have values in one slot", dropped, count,
                              f"{merge_size} times" if merge_size > 0 else "alike")
