"""Which rows a table keeps: the words that all ranks agree on, and what a server does by them around each update.

A table that is told nothing has no ``Keeper``, and pays nothing. Updates are numbered from 1 on: each push, or
synchronous round, is one for every table, also where it brings no rows, so that all servers have the same number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fleet_mpi.parameter_server.tables.base import SCORES as SCORE_COLUMN, UPDATES
from fleet_mpi.parameter_server.tables.growing.admission import admission_of
from fleet_mpi.parameter_server.tables.growing.eviction import EVICTIONS, lowest
from fleet_mpi.parameter_server.tables.growing.score import MOST, SCORES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.tables.growing.store import RowStore

# Of the rows there is room for, those that a full table evicts at once: finding them looks at every row.
_ROOM_SHARE = 64


class Keeping(NamedTuple):
    """Plain data; as it stands here, every id is stored with its first push and stays."""

    admit: tuple[Any, ...] = ()        # ("seen", k) or ("probability", p)
    score: str = ""                    # a name of SCORES
    evict: tuple[Any, ...] = ()        # a name of EVICTIONS and its number
    every: int = 1                     # updates from one eviction to the next
    budget_bytes: int | None = None    # of each server; None: what memory it has
    when_full: str = "refuse"          # or "evict"

    @property
    def is_asked(self) -> bool:
        """Whether updates have to do anything about it."""
        return bool(self.admit or self.score)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is saved beside ids, values and states."""
        return (*((SCORE_COLUMN,) if self.score else ()), *((UPDATES,) if self.is_asked else ()))


EVERYTHING = Keeping()


class Keeper:
    """Decides for one server's rows; ``key`` is that of the table's draws. ``updates`` counts from the table's first.
    """

    def __init__(self, keeping: Keeping, store: RowStore, key: int) -> None:
        self.keeping, self.store, self.updates = keeping, store, 0
        self.admission = admission_of(keeping.admit, key)

    def admitted(self, ids: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """Which of these ids, none of them stored, the next update stores; ``pushes`` is how many have each."""
        return np.ones(len(ids), bool) if self.admission is None else self.admission.admits(
            ids, pushes, self.updates + 1)

    def pushes_of(self, ids: np.ndarray, contributions: Sequence[Rows]) -> np.ndarray:
        """``pushes_of``, where anything looks at how many there are; else one for each."""
        is_asked = self.admission is not None or self.keeping.score == "count"
        return pushes_of(ids, contributions if is_asked else contributions[:1])

    def update(self, ids: np.ndarray, values: np.ndarray, pushes: np.ndarray, rate: np.ndarray) -> None:
        """Run the rule on the rows that are stored or admitted, then do what is due at the end of an update."""
        slots = self._slots(ids, pushes)
        stored = slots >= 0
        if not stored.all():
            slots, values, pushes = slots[stored], values[stored], pushes[stored]
        self.store.update(slots, values, rate)
        self.updates += 1
        if self.keeping.score:
            SCORES[self.keeping.score](self._scores, slots, pushes, self.updates)
        if self.keeping.evict and self.updates % self.keeping.every == 0:
            self.evict(*self.keeping.evict)

    def evict(self, kind: str, number: int) -> int:
        """Forget rows; returns how many."""
        eviction = EVICTIONS[kind]
        if eviction.counts:
            self._scores[...] = np.minimum(self._scores, MOST - 1) + 1
        slots = eviction.slots_to_go(self.store.ids(), self._scores, self.updates, number)
        gone = self.store.erase(self.store.ids()[slots])
        if eviction.begins_anew:
            self._scores[...] = 0
        return gone

    def begin_scores(self, slots: np.ndarray) -> None:
        """Rows that were loaded without scores are as good as new."""
        SCORES[self.keeping.score](self._scores, slots, np.zeros(len(slots), np.int64), self.updates)

    @property
    def _scores(self) -> np.ndarray:
        assert self.store.scores is not None   # whatever asks for them wants a score, which is checked at the door
        return self.store.scores

    def _slots(self, ids: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """The slots of ids, -1 for those that are not admitted."""
        slots = self.store.find(ids)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            admitted = self.admitted(ids[missing], pushes[missing])
            new, waiting = missing[admitted], missing[~admitted]
            if self.admission is not None:
                self.admission.note(ids[waiting], pushes[waiting])
            if self._made_room(slots, len(new)):
                slots = self.store.find(ids)
            slots[new] = self.store.add(ids[new])
        return slots

    def _made_room(self, slots: np.ndarray, new: int) -> bool:
        """Evict for so many new rows where memory is full and that was asked for; none that ``slots`` has."""
        lacking = self.store.count + new - self.store.capacity
        if lacking <= 0 or self.keeping.when_full != "evict":
            return False
        number = max(lacking, self.store.capacity // _ROOM_SHARE)
        going = lowest(self.store.ids(), self._scores, number, slots[slots >= 0])
        self.store.erase(self.store.ids()[going])
        return True


def pushes_of(ids: np.ndarray, contributions: Sequence[Rows]) -> np.ndarray:
    """How many of the contributions have each of these ids, which are all of theirs; each has an id once at most."""
    if len(contributions) == 1:
        return np.ones(len(ids), np.int64)
    order, came = np.argsort(ids), np.concatenate([rows.ids for rows in contributions])
    return np.bincount(order[np.searchsorted(ids, came, sorter=order)], minlength=len(ids))
