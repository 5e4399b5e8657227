"""A worker's own copies of a growing table's rows, in modes where workers train by themselves (geo).

A copy is a row's values, the states of the worker's own rule, and ``old``: the servers' values as far as this worker
knows them. What a copy moved by is values - old. Rows that were only looked at are forgotten; those that were updated
stay, with their states. Knows no messages: who has it brings rows from the servers before they are used.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.parameter_server.tables.growing import budget
from fleet_mpi.parameter_server.tables.growing.rules import growing_rule
from fleet_mpi.parameter_server.tables.growing.store import RowStore
from fleet_mpi.update_rules import MergedRows, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.parameter_server.tables.growing.description import GrowingDescription

OLD = "old"
# Marks of rows. All others say when a row that was updated was as the servers had it: in the i-th interval between
# exchanges 2 i, and 2 i + 1 if it was updated since. Intervals count from 1.
NEW, LOOKED_AT, REPLACED = 0, -1, 1
# So many rows that were only looked at are kept until an exchange.
MOST_LOOKED_AT = 1 << 18


class RowCopies:
    """One worker's copies of one table; ``rates`` is {name: [1] array}, ``share`` what counts of what a copy moved."""

    def __init__(self, description: GrowingDescription, rates: Mapping[str, np.ndarray], share: float) -> None:
        recipe = description.recipe
        self.name, self.width, self.dtype = description.name, description.width, np.dtype(description.dtype)
        self.steps, self.rate, self.share = recipe.steps, rates[recipe.rate], share
        rule = growing_rule(recipe.rule)
        # The state is the last one: kernels know where their own are.
        self.store = RowStore(self.width, self.dtype, dataclasses.replace(rule, states=(*rule.states, State(OLD, OLD))),
                              dict(recipe.hypers), _zeros, budget.server_bytes(), keeps_scores=True)
        self.moves_untouched = rule.moves_untouched and not self.store.hypers.get("lazy_mode")
        self.interval, self.looked_at = 1, 0
        self._moving = np.empty(0, np.int64)   # the slots that an exchange is about

    @property
    def marks(self) -> np.ndarray:
        """One for each row."""
        assert self.store.scores is not None
        return self.store.scores

    # ------------------------------------------------------------------ between exchanges

    def missing(self, ids: np.ndarray) -> np.ndarray:
        """Those of some ids, each once, whose rows ``take`` must have before they are used."""
        slots = self.store.find(ids)
        is_missing = slots < 0
        there = np.flatnonzero(~is_missing)
        marks = self.marks[slots[there]]
        is_missing[there] = (marks != LOOKED_AT) & (marks < 2 * self.interval)
        return np.unique(ids[is_missing])

    def take(self, ids: np.ndarray, values: np.ndarray) -> None:
        """Rows as the servers have them, each once: a copy of a row that was updated moves by what servers' did."""
        try:
            slots = self.store.add(ids)
        except EnvironmentProblem as error:
            raise EnvironmentProblem(f"table {self.name!r}: a worker that trains by itself (geo) keeps every row that "
                                     f"it has updated: {error} Or train in a mode where servers keep them.") from None
        marks, own, old = self.marks[slots], self.store.values(), self.store.state(OLD)
        is_known = (marks > REPLACED)[:, None]
        own[slots] = np.where(is_known, own[slots] + (values - old[slots]), values)
        old[slots] = values
        self.marks[slots] = np.where(marks == NEW, LOOKED_AT, 2 * self.interval)
        self.looked_at += int(np.count_nonzero(marks == NEW))

    def read(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with copies of rows, none of them missing; ids may repeat."""
        self.store.read(ids, out)

    def make_room(self) -> None:
        """Before looking: forget what was only looked at, where that is much."""
        if self.looked_at > MOST_LOOKED_AT:
            self._forget_looked_at()

    def update(self, rows: MergedRows) -> None:
        """Run the worker's rule on copies, none of them missing."""
        values = rows.values.copy() if self.steps else rows.values
        for step in self.steps:
            step.apply(values, values, np.empty_like(values))  # type: ignore[union-attr]  # no norms: see the table
        slots = self.store.find(rows.ids)
        self.store.update(slots, values, self.rate)
        self.marks[slots] = 2 * self.interval + 1

    def _forget_looked_at(self) -> None:
        if self.looked_at:
            self.store.erase(self.store.ids()[self.marks == LOOKED_AT])
            self.looked_at = 0

    # ------------------------------------------------------------------ exchanges

    def moved(self) -> MergedRows:
        """What goes to the servers: the worker's share of what copies moved by that were updated since the last time.

        Where a rule moves rows that have no gradient, all that differ from what servers are known to have.
        """
        self._moving = slots = np.flatnonzero(self._have_moved())
        own, old = self.store.values(), self.store.state(OLD)
        change = own[slots] - old[slots]
        np.multiply(change, self.share, out=change)
        old[slots] += change
        return MergedRows(self.store.ids()[slots], change, ANY_HEIGHT)

    @property
    def moving(self) -> np.ndarray:
        """The ids of what ``moved`` gave: rows that ``settle`` wants."""
        return self.store.ids()[self._moving]

    def settle(self, values: np.ndarray) -> None:
        """End an exchange with the rows that servers have now."""
        slots, own, old = self._moving, self.store.values(), self.store.state(OLD)
        own[slots] += values - old[slots]
        old[slots] = values
        self.interval += 1
        self.marks[slots] = 2 * self.interval
        self._moving = slots[:0]
        self._forget_looked_at()

    def restart(self) -> None:
        """The servers' values were replaced, or are to replace what copies moved by: states stay."""
        self._forget_looked_at()
        self.marks[...] = REPLACED

    def _have_moved(self) -> np.ndarray:
        marks = self.marks
        has_gradient = marks == 2 * self.interval + 1
        if not self.moves_untouched:
            return has_gradient
        return has_gradient | (marks > REPLACED) & (self.store.values() != self.store.state(OLD)).any(axis=1)


def _zeros(ids: np.ndarray, out: np.ndarray) -> None:
    """What a copy is before it has the servers' values."""
    out.fill(0)
