"""One server's part of a table that grows: what travels, and how workers' gradients become an update of its rows.

Rows lie in a ``RowStore``. A pull never changes it: the row of an id that is not stored is what it would begin with.
Gradients are summed by id in worker order and divided by the number of all contributors, as for tables of fixed height.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT, Rows, aligned
from fleet_mpi.errors import EnvironmentProblem, PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.tables.growing import budget
from fleet_mpi.parameter_server.tables.growing.columns import RowColumns
from fleet_mpi.parameter_server.tables.growing.keeping import Keeper, pushes_of
from fleet_mpi.parameter_server.tables.growing.store import RowStore
from fleet_mpi.parameter_server.tables.rows import RowMean

if TYPE_CHECKING:
    from fleet_mpi.parameter_server.recipes import Step
    from fleet_mpi.parameter_server.tables.base import Node
    from fleet_mpi.parameter_server.tables.growing.description import GrowingDescription
    from fleet_mpi.placement.shard import Shard
    from fleet_mpi.update_rules import MergedRows

MOST_ROWS = 1 << 31   # in one request: slots are numbered with 32 bits
_ADDS = np.full(1, -1, np.float32)   # the rate at which descent adds, with the bits of a sum


class GrowingTable:
    """Rows by id, of any number."""

    needs_norms = False

    def __init__(self, description: GrowingDescription, server: int, rates: Mapping[str, np.ndarray]) -> None:
        self.description, self.name, self.recipe = description, description.name, description.servers_recipe
        self.server, keeping = server, description.keeping
        self.width, self.dtype = description.width, np.dtype(description.dtype)
        self.rate = _ADDS if description.is_copied else rates[self.recipe.rate]
        self.mean = RowMean(ANY_HEIGHT)
        self.store = RowStore(self.width, self.dtype, self.recipe.rule, dict(self.recipe.hypers),
                              description.first_values, keeping.budget_bytes or budget.server_bytes(),
                              bool(keeping.score))
        self.keeper = Keeper(keeping, self.store, description.key) if keeping.is_asked else None
        self.columns = RowColumns(self.name, self.store, self.keeper)

    # ------------------------------------------------------------------ values by name: they are by id here

    def shards(self) -> tuple[Shard, ...]:
        """None."""
        return ()

    def param(self, variable: str, block: int) -> np.ndarray:
        """KeyError: see ``columns``."""
        raise KeyError(block)

    def state(self, variable: str, block: int, name: str) -> np.ndarray:
        """KeyError: see ``columns``."""
        raise KeyError(block)

    def set_state(self, variable: str, block: int, name: str, values: np.ndarray) -> None:
        """KeyError: see ``columns``."""
        raise KeyError(block)

    # ------------------------------------------------------------------ what travels

    def push_bytes(self, count: int) -> int:
        """Of so many rows with their ids."""
        self._refuse_count(count)
        return messages.rows_bytes(count, self.width, self.dtype)

    def read(self, body: np.ndarray, count: int) -> Rows:
        """The Rows that so many bytes hold: views of them."""
        return Rows(body[:8 * count].view(np.int64), self._rows_of(body[aligned(8 * count):], count), ANY_HEIGHT)

    def answer_bytes(self, count: int) -> int:
        """Of so many rows."""
        self._refuse_count(count)
        return aligned(count * self.width * self.dtype.itemsize)

    def answer(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Copy the rows of ids; of those that are not stored, what they would begin with."""
        self.store.read(ids, self._rows_of(out, len(ids)))

    def _rows_of(self, line: np.ndarray, count: int) -> np.ndarray:
        """The front of a line of bytes as so many rows."""
        return line[:count * self.width * self.dtype.itemsize].view(self.dtype).reshape(count, self.width)

    def _refuse_count(self, count: int) -> None:
        if not 0 <= count <= MOST_ROWS:
            raise PeerLost(f"table {self.name!r}: a request for {count} rows, expected 0 to {MOST_ROWS}: do both run "
                           f"the same program?")

    # ------------------------------------------------------------------ updating

    def refuse(self, contributions: Sequence[Rows]) -> None:
        """EnvironmentProblem where there is no room for the rows that these would store."""
        store, most = self.store, sum(len(rows.ids) for rows in contributions)
        if store.count + most <= store.capacity:
            return
        ids = np.unique(np.concatenate([rows.ids for rows in contributions]))
        missing = ids[store.find(ids) < 0]
        new, kept = len(missing), store.count
        if self.keeper is not None:
            pushes = pushes_of(ids, contributions)[np.searchsorted(ids, missing)]
            new = int(self.keeper.admitted(missing, pushes).sum())
            if self.description.keeping.when_full == "evict":
                kept = len(ids) - len(missing)
        if kept + new > store.capacity:
            raise EnvironmentProblem(
                f"table {self.name!r}: server {self.server} stores {store.count:,} rows of it and is to take {new:,} "
                f"more: there is room for {store.capacity:,} (budget_bytes={store.budget_bytes:,}). Give the table a "
                f"larger budget_bytes, or more servers, or let it evict (evict=..., when_full=\"evict\")")

    def update(self, contributions: Sequence[Rows]) -> None:
        """By the mean over all contributors, with the row or without."""
        gradient, = self.gradients(contributions)
        for step in self.recipe.steps:
            gradient.apply(step)  # type: ignore[arg-type]  # norms were refused when the table was declared
        gradient.finish(())

    def gradients(self, contributions: Sequence[Rows]) -> list[GrowingGradient]:
        """One: the mean."""
        rows, keeper = self.mean(contributions), self.keeper
        return [GrowingGradient(self, rows, None if keeper is None else keeper.pushes_of(rows.ids, contributions))]


class GrowingGradient:
    """The gradient of some rows on its way through a recipe that has no norms.

    ``pushes`` says how many pushes had each row, for a table that is to look at that.
    """

    def __init__(self, table: GrowingTable, rows: MergedRows, pushes: np.ndarray | None) -> None:
        self.table, self.rows, self.pushes = table, rows, pushes
        self.variable, self.recipe = table.name, table.recipe

    def apply(self, step: Step) -> None:
        """Apply a step that looks at gradients only."""
        grads = self.rows.values
        step.apply(grads, grads, np.empty_like(grads))

    def scale(self, factor: np.ndarray) -> None:
        """Never asked for."""

    def nodes(self) -> list[Node]:
        """Nothing has a norm here."""
        return []

    def measure(self) -> dict[str, list[Node]]:
        """Nothing."""
        return {}

    def finish(self, squares: tuple[np.ndarray, ...]) -> None:
        """Make the rows that are not stored yet, and run the rule."""
        store, keeper, rate = self.table.store, self.table.keeper, self.table.rate
        try:
            if keeper is None:
                store.update(store.add(self.rows.ids), self.rows.values, rate)
            else:
                assert self.pushes is not None
                keeper.update(self.rows.ids, self.rows.values, self.pushes, rate)
        except EnvironmentProblem as error:   # the system refuses memory within the budget
            raise EnvironmentProblem(f"table {self.table.name!r}: {error}") from None
