"""Which rows a table forgets, by their scores: the same for any number of servers. Knows no clock and no messages.

At most N rows are kept as at most N // 1024 in each of the 1024 partitions of ids, which needs no word between servers.
A partition holds its share within a few of the square root of it, so from ``LEAST_KEPT`` rows on (shares of 16) a table
that is full has more than nine tenths of N rows; fewer are refused: so few need no eviction, they fit any memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi.kernels.reference import partitions

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 1 << partitions.BITS
LEAST_KEPT = 16 * PARTITIONS


class Eviction(NamedTuple):
    """``slots_to_go(ids, scores, update, number)`` of all rows; ``score`` is the one it wants, empty for any."""

    slots_to_go: Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]
    score: str
    begins_anew: bool = False   # whether the others' scores are 0 afterwards
    counts: bool = False        # whether all scores are one more before it looks


def older_than(ids: np.ndarray, scores: np.ndarray, update: int, number: int) -> np.ndarray:
    """Those that none of the last ``number`` updates had."""
    return np.flatnonzero(scores <= update - number)


def fewer_than(ids: np.ndarray, scores: np.ndarray, update: int, number: int) -> np.ndarray:
    """Those that fewer than ``number`` pushes had since they were stored, or since rows were last looked at like this.
    """
    return np.flatnonzero(scores < number)


def unseen(ids: np.ndarray, scores: np.ndarray, update: int, number: int) -> np.ndarray:
    """Those that were looked at like this ``number`` times, this one counted, since a push had them last."""
    return np.flatnonzero(scores >= number)


def at_most(ids: np.ndarray, scores: np.ndarray, update: int, number: int) -> np.ndarray:
    """Those with the lowest scores in each partition that has more than its share; of equal ones the lowest ids."""
    # Of 16 bits: numpy sorts these by radix.
    owners, share = partitions.partitions_of(ids).astype(np.uint16), number // PARTITIONS
    counts = np.bincount(owners, minlength=PARTITIONS)
    if counts.max() <= share:
        return np.zeros(0, np.int64)
    parts = np.split(np.argsort(owners, kind="stable"), np.cumsum(counts)[:-1])
    return np.concatenate([_lowest(ids, scores, slots, len(slots) - share) for slots in parts if len(slots) > share])


def lowest(ids: np.ndarray, scores: np.ndarray, number: int, staying: np.ndarray) -> np.ndarray:
    """So many slots with the lowest scores, but for those that stay; of equal ones the lowest ids."""
    goes = np.ones(len(ids), bool)
    goes[staying] = False
    slots = np.flatnonzero(goes)
    return _lowest(ids, scores, slots, number) if number < len(slots) else slots


def _lowest(ids: np.ndarray, scores: np.ndarray, slots: np.ndarray, number: int) -> np.ndarray:
    """So many of these slots, one at least, in any order: sorting all of them would take several times as long."""
    found = scores[slots]
    limit = np.partition(found, number - 1)[number - 1]
    below, ties = slots[found < limit], slots[found == limit]
    lacking = number - len(below)
    return np.concatenate([below, ties[np.argpartition(ids[ties], lacking - 1)[:lacking]]])


EVICTIONS = {"older_than": Eviction(older_than, "last_seen"), "fewer_than": Eviction(fewer_than, "count", True),
             "unseen": Eviction(unseen, "unseen", counts=True), "at_most": Eviction(at_most, "")}
