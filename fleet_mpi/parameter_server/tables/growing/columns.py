"""The rows of a ``RowStore`` as columns: what a save reads, and what a load brings, some rows after the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server.tables.base import COUNT, KEYS, SCORES, VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.parameter_server.tables.growing.store import RowStore


class RowColumns:
    """``Columns`` of one table."""

    def __init__(self, name: str, store: RowStore) -> None:
        self.name, self.store = name, store
        self._came = np.zeros(0, bool)   # by slot: the rows that a load has brought so far

    def get(self, name: str) -> np.ndarray:
        """A column: a view."""
        store = self.store
        if name == COUNT:
            return np.array([store.count])
        if name == SCORES and store.scores is not None:
            return store.scores
        return {KEYS: store.ids, VALUES: store.values}.get(name, lambda: store.state(name))()

    def take(self, columns: Mapping[str, np.ndarray], are_last: bool) -> None:
        """Take over rows; with the last ones, forget those that did not come."""
        ids, values = self._keys_and_values(columns)
        states = {name: array for name, array in columns.items() if name not in (KEYS, VALUES, SCORES)}
        self.store.load(ids, values, states or self._states_of(ids))
        slots = self.store.find(ids)
        if self.store.scores is not None and SCORES in columns:
            self.store.scores[slots] = columns[SCORES]
        self._came = np.concatenate([self._came, np.zeros(self.store.count - len(self._came), bool)])
        self._came[slots] = True
        if are_last:
            self.store.erase(self.store.ids()[~self._came])
            self._came = np.zeros(0, bool)

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
