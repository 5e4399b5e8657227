"""Row numbers for sequence ops: which row of the input each row of the output comes from.

Computed on the host once per plan, from the offsets of one LoD level; -1 stands for a row of padding.
Ragged batches are planned anew each time, so nothing here loops over sequences in Python. Knows no ops.
"""

from functools import lru_cache

import numpy as np

# Levels kept as arrays: the ops of one plan, forward and backward, ask for the same few again and again.
LEVELS_KEPT = 128


@lru_cache(maxsize=LEVELS_KEPT)
def offsets_array(level, xp=np):
    """The offsets of a level as an int64 array of ``xp``; shared, so never write into it."""
    made = np.array(level, np.int64)
    return made if xp is np else xp.asarray(made)


def level_of(lengths):
    """The offsets, as a LoD level, of sequences of these lengths (an array)."""
    return (0, *np.cumsum(lengths).tolist())


def lengths_of(level):
    """The lengths of a level's sequences as an array."""
    offsets = offsets_array(level)
    return offsets[1:] - offsets[:-1]


def runs(starts, lengths):
    """starts[0], starts[0] + 1, ... for lengths[0] numbers, then the same for the next, as one array."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


def first_rows(level):
    """The first row of each sequence, -1 of an empty one."""
    offsets = offsets_array(level)
    return np.where(offsets[1:] > offsets[:-1], offsets[:-1], -1)


def last_rows(level):
    """The last row of each sequence, -1 of an empty one."""
    offsets = offsets_array(level)
    return np.where(offsets[1:] > offsets[:-1], offsets[1:] - 1, -1)


def reversed_rows(level):
    """Each sequence's rows from last to first."""
    offsets = offsets_array(level)
    return np.repeat(offsets[1:] + offsets[:-1] - 1, np.diff(offsets)) - np.arange(level[-1], dtype=np.int64)


def repeated_rows(level, counts):
    """Sequence i's rows counts[i] times, one behind the other."""
    lengths = np.repeat(lengths_of(level), counts)
    return runs(np.repeat(offsets_array(level)[:-1], counts), lengths)


def padded_rows(level, length):
    """Each sequence's rows, then -1 up to ``length`` of them."""
    offsets = offsets_array(level)
    rows = offsets[:-1, None] + np.arange(length, dtype=np.int64)
    return np.where(rows < offsets[1:, None], rows, -1).reshape(-1)


def joined_rows(levels):
    """For several inputs, where each one's rows go when their i-th sequences are joined; and the new level."""
    lengths = [lengths_of(level) for level in levels]
    level = level_of(np.sum(lengths, axis=0))
    start, places = offsets_array(level)[:-1], []
    for some in lengths:
        places.append(runs(start, some))
        start = start + some
    return places, level


def time_order(level, is_reverse=False):
    """How to walk all sequences at once: (sequences from long to short, rows by step, rows per step).

    The rows are the first of every sequence, then the second of those that have one, and so on, each step's
    in the order of the sequences; so the sequences that go on are always the first ones of the step before.
    """
    offsets, lengths = offsets_array(level), lengths_of(level)
    order = np.argsort(-lengths, kind="stable")
    counts = len(lengths) - np.searchsorted(lengths[order[::-1]], np.arange(lengths.max(initial=0)), side="right")
    step = np.repeat(np.arange(len(counts)), counts)
    sequence = order[np.arange(level[-1]) - np.repeat(np.cumsum(counts) - counts, counts)]
    rows = offsets[sequence + 1] - 1 - step if is_reverse else offsets[sequence] + step
    return order, rows, counts
