"""When the row of an id becomes stored: at once, when it was pushed some times, or with some probability.

An id that is not admitted is used all the same: it reads as it would begin, and its gradient is dropped. What decides
is the id's own draw, or counts of its partition: the same ids are admitted for any number of servers. Knows no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from fleet_mpi.kernels.reference import partitions, random, row_draws
from fleet_mpi.kernels.reference.row_index import hashed_line

if TYPE_CHECKING:
    from typing import Any

MOST_COUNTED = 255   # what a counter of the filter can say
# Counters in each of a partition's two rows: 64 MiB for all partitions, on whichever servers these are. With three
# million ids that wait, one new id in 137 finds both of its counters used by others.
_CELL_BITS = 15
_CELLS = 1 << _CELL_BITS


class Admission(Protocol):
    """Decides which ids are stored."""

    def admits(self, ids: np.ndarray, pushes: np.ndarray, update: int) -> np.ndarray:
        """Which of these ids, each once and none of them stored, update number ``update`` stores: bool [n].

        ``pushes`` says how many of its pushes have each. Changes nothing.
        """

    def note(self, ids: np.ndarray, pushes: np.ndarray) -> None:
        """Keep in mind that these were pushed and not admitted."""


class Seen:
    """Admits with the k-th push that has an id.

    A count filter: two hashed counters per id, of which the smaller one counts, so it never says less than there were
    pushes, and rarely more. It never forgets: an id whose row was evicted is stored again by its next push.
    """

    def __init__(self, times: int) -> None:
        self.times = times
        # Zeros of this size come from the system page by page: those of other servers' partitions never do.
        self.counts = np.zeros((2, _CELLS << partitions.BITS), np.uint8)

    def admits(self, ids: np.ndarray, pushes: np.ndarray, update: int) -> np.ndarray:
        """Where counter and pushes reach k."""
        before = np.minimum(*(row[cells] for row, cells in zip(self.counts, _cells(ids))))
        return before + pushes >= self.times

    def note(self, ids: np.ndarray, pushes: np.ndarray) -> None:
        """Add to both counters; ids that share one add up."""
        for row, cells in zip(self.counts, _cells(ids)):
            touched, places = np.unique(cells, return_inverse=True)
            row[touched] = np.minimum(row[touched] + np.bincount(places, pushes).astype(np.int64), MOST_COUNTED)


class Probability:
    """Admits with a probability, drawn anew in every update that has an id."""

    def __init__(self, probability: float, key: int) -> None:
        self.probability, self.key = probability, key

    def admits(self, ids: np.ndarray, pushes: np.ndarray, update: int) -> np.ndarray:
        """By the first number of the id's stream of this update."""
        drawn = np.empty((len(ids), 1))
        row_draws.uniform(ids, drawn, random.key_of(self.key, "admission", update), 0.0, 1.0)
        admitted: np.ndarray = drawn[:, 0] < self.probability
        return admitted

    def note(self, ids: np.ndarray, pushes: np.ndarray) -> None:
        """The next draw knows nothing of this one."""


def admission_of(words: tuple[Any, ...], key: int) -> Admission | None:
    """What ("seen", k) or ("probability", p) means for a table with this key of draws; None: all ids are admitted."""
    if not words:
        return None
    kind, number = words
    return Seen(number) if kind == "seen" else Probability(number, key)


def _cells(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An id's counters: those of its partition, by the bits of its hash that follow the partition's."""
    hashed = hashed_line(ids)
    first = (hashed >> 64 - partitions.BITS - _CELL_BITS).astype(np.int64)
    second = (hashed >> 64 - partitions.BITS - 2 * _CELL_BITS).astype(np.int64)
    partition = first >> _CELL_BITS << _CELL_BITS
    return first, partition | second & _CELLS - 1
