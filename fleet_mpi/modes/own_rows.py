"""Rows that a worker keeps copies of, of all tables of a job, for modes in which workers train by themselves.

A row is brought from the servers when it is first used, and when it is used again after an exchange that it had no part
in: so what a step computes with is never older than the worker's last exchange. All tables share their requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.update_rules import MergedRows, merge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.tables.base import Copies


class OwnRows:
    """One worker's copies; becomes the source of its client's rows."""

    def __init__(self, client: Client, share: float) -> None:
        description = client.description
        self.client = client
        self.rates = {name: np.zeros(1, description.rate_dtypes.get(name, np.float32)) for name in description.rates}
        self.tables: list[Copies] = [one.copies(self.rates, share) for one in description.row_tables]
        client.source_of_rows = self

    def pull(self, wanted: Mapping[int, np.ndarray],
             into: Mapping[int, Sequence[np.ndarray]] | None = None) -> dict[int, Any]:
        """{table number: rows in the order of its ids}, from the copies; see ``Client.pull_rows``."""
        lines = {number: np.ascontiguousarray(arrays.to_host(ids), np.int64).reshape(-1)
                 for number, ids in wanted.items()}
        for number in lines:
            self.tables[number].make_room()
        self._bring(lines)
        found: dict[int, Any] = {}
        for number, ids in lines.items():
            table = self.tables[number]
            outs = [arrays.empty((len(ids), table.width), table.dtype)] if into is None else into[number]
            _fill(table, ids, outs)
            found[number] = outs[0] if into is None else outs
        return found

    def update(self, rows: Sequence[Rows | None]) -> None:
        """A step's row gradients, one Rows or None for each table, by the worker's own rules and rates."""
        for rate, value in zip(self.rates.values(), self.client.rates):
            rate[0] = value
        merged = [_none(table) if one is None else merge(one) for table, one in zip(self.tables, rows, strict=True)]
        self._bring({number: one.ids for number, one in enumerate(merged)})
        for table, one in zip(self.tables, merged):
            table.update(one)

    def moved(self) -> list[Rows | None]:
        """What a push takes to the servers."""
        return [table.moved() for table in self.tables]

    def settle(self) -> None:
        """After that push: take those rows as the servers have them now."""
        if not self.tables:
            return
        moving = {number: table.moving for number, table in enumerate(self.tables)}
        found = self.client.rows.pull(moving)
        for number, table in enumerate(self.tables):
            table.settle(found[number])

    def restart(self) -> None:
        """The servers' values replace what copies moved by."""
        for table in self.tables:
            table.restart()

    def _bring(self, wanted: Mapping[int, np.ndarray]) -> None:
        """One pull of the rows that are missing."""
        missing = {number: self.tables[number].missing(ids) for number, ids in wanted.items()}
        missing = {number: ids for number, ids in missing.items() if len(ids)}
        if missing:
            for number, values in self.client.rows.pull(missing).items():
                self.tables[number].take(missing[number], values)


def _fill(table: Copies, ids: np.ndarray, outs: Sequence[np.ndarray]) -> None:
    """Arrays, one behind the other, with the rows of ids."""
    start = 0
    for out in outs:
        rows = out.reshape(-1, table.width)
        table.read(ids[start:start + len(rows)], rows)
        start += len(rows)


def _none(table: Copies) -> MergedRows:
    return MergedRows(np.empty(0, np.int64), np.empty((0, table.width), table.dtype), ANY_HEIGHT)
