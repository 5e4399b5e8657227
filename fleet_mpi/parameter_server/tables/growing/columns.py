"""The rows of a ``RowStore`` as columns: what a save reads, and what a load brings, some rows after the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.parameter_server.tables.base import COUNT, KEYS, SCORES, UPDATES, VALUES
from fleet_mpi.parameter_server.tables.growing.eviction import EVICTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.parameter_server.tables.growing.keeping import Keeper
    from fleet_mpi.parameter_server.tables.growing.store import RowStore


class RowColumns:
    """``Columns`` of one table."""

    def __init__(self, name: str, store: RowStore, keeper: Keeper | None = None) -> None:
        self.name, self.store, self.keeper = name, store, keeper
        self._came = np.zeros(0, bool)   # by slot: the rows that a load has brought so far

    def get(self, name: str) -> np.ndarray:
        """A column: a view."""
        store = self.store
        if name == COUNT:
            return np.array([store.count])
        if name == SCORES and store.scores is not None:
            return store.scores
        if name == UPDATES and self.keeper is not None:
            return np.array([self.keeper.updates])
        return {KEYS: store.ids, VALUES: store.values}.get(name, lambda: store.state(name))()

    def take(self, columns: Mapping[str, np.ndarray], are_last: bool) -> None:
        """Take over rows; with the last ones, forget those that did not come."""
        ids, values = self._keys_and_values(columns)
        states = {name: array for name, array in columns.items() if name not in (KEYS, VALUES, SCORES, UPDATES)}
        before = self.store.count
        self.store.load(ids, values, states or self._states_of(ids))
        slots = self.store.find(ids)
        self._take_scores(columns, slots, before)
        self._came = np.concatenate([self._came, np.zeros(self.store.count - len(self._came), bool)])
        self._came[slots] = True
        if are_last:
            self.store.erase(self.store.ids()[~self._came])
            self._came = np.zeros(0, bool)

    def evict(self, kind: str, number: int) -> int:
        """Forget rows by their scores."""
        if self.keeper is None or kind not in EVICTIONS or EVICTIONS[kind].score != self.keeper.keeping.score:
            raise UsageError(f"table {self.name!r} keeps no score by which rows go that are {kind!r}: do both run the "
                             f"same program?")
        return self.keeper.evict(kind, number)

    def _take_scores(self, columns: Mapping[str, np.ndarray], slots: np.ndarray, before: int) -> None:
        """And the number of the update they are of; rows that are new, from slot ``before`` on, may have none."""
        if self.keeper is not None and UPDATES in columns:
            self.keeper.updates = int(columns[UPDATES][0])
        if self.store.scores is not None and self.keeper is not None:
            if SCORES in columns:
                self.store.scores[slots] = columns[SCORES]
            else:
                self.keeper.begin_scores(slots[slots >= before])

    def _keys_and_values(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        ids, values = columns.get(KEYS), columns.get(VALUES)
        if ids is None or values is None or ids.dtype != np.int64 or ids.ndim != 1 or values.dtype != self.store.dtype:
            looks = {name: f"{array.dtype}{list(array.shape)}" for name, array in columns.items()}
            raise PeerLost(f"table {self.name!r}: rows came as {looks}, expected {KEYS} of int64 and {VALUES} of "
                           f"{self.store.dtype}: do both run the same program?")
        return ids, values

    def _states_of(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """The states that rows have, or would begin with."""
        store, slots = self.store, self.store.find(ids)
        found = {}
        for name, first in store.rule.initial(store.hypers).items():
            kept = store.state(name)
            is_of_table = any(state.name == name for state in store.rule.table_states)
            if not is_of_table:
                begun = np.full((len(ids), kept.shape[1]), first, kept.dtype)
                begun[slots >= 0] = kept[slots[slots >= 0]]
            found[name] = kept.copy() if is_of_table else begun
        return found
