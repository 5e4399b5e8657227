"""The rows of a table that grows on their way to its servers: columns come whole, each server gets its part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.snapshots import LAST_ROWS
from fleet_mpi.parameter_server.tables.base import KEYS, SCORES, VALUES
from fleet_mpi.parameter_server.wholes import BATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.requests import Link

    Request = tuple[Link, bytes, np.ndarray]


class RowLoad:
    """The columns of one table. The servers have these rows afterwards, and no others."""

    def __init__(self, client: Client, variable: str) -> None:
        self.links, self.name = client.links, variable
        number, described = next((number, one) for number, one in enumerate(client.description.row_tables)
                                 if one.name == variable)
        self.route, self.looks = client.rows.tables[number].route, described.states_of(described.variables[variable])
        self.columns: dict[str, np.ndarray] = {}

    def add(self, column: str, array: np.ndarray) -> None:
        """Take a column; "" for the values."""
        self.columns[column or VALUES] = array

    def rounds(self) -> Iterator[tuple[list[Request], int]]:
        """Yield requests that may be in flight together, and the number that they have."""
        self._refuse_incomplete()
        columns = {name: array for name, array in self.columns.items() if self._is_by_row(name)}
        numbers = {name: array for name, array in self.columns.items() if name not in columns}
        ids = np.ascontiguousarray(columns[KEYS])
        _, order, counts = self.route.split(ids)
        order = np.arange(len(ids)) if order is None else order
        ends = np.cumsum(counts)
        rows = max(1, BATCH_BYTES // sum(array[:1].nbytes or 1 for array in columns.values()))
        for start in range(0, max(1, *counts), rows):
            parts: dict[int, list[Request]] = {0: [], LAST_ROWS: []}
            for link, count, end in zip(self.links, counts.tolist(), ends.tolist()):
                if start < max(1, count):
                    chosen = order[end - count + start:min(end - count + start + rows, end)]
                    parts[LAST_ROWS if start + rows >= count else 0].append(self._request(
                        link, {**{name: array[chosen] for name, array in columns.items()}, **numbers}))
            yield from ((requests, number) for number, requests in parts.items() if requests)

    def _request(self, link: Link, columns: dict[str, np.ndarray]) -> Request:
        described, arrays = messages.manifest({("rows", self.name, name): array for name, array in columns.items()})
        return link, described, messages.joined(arrays)

    def _is_by_row(self, column: str) -> bool:
        return column == VALUES or self.looks[column].is_spread

    def _refuse_incomplete(self) -> None:
        """UsageError unless these columns are the rows of a table."""
        states = {name for name in self.looks if name not in (KEYS, SCORES)}
        has = set(self.columns)
        if not {KEYS, VALUES} <= has or states & has not in (set(), states):
            raise UsageError(f"table {self.name!r} has rows for any id: its values and {self.name}{KEYS} are stored "
                             f"together, with all states of its rule or none")
        heights = {name: len(array) for name, array in self.columns.items() if self._is_by_row(name)}
        if len(set(heights.values())) > 1:
            raise UsageError(f"table {self.name!r}: its columns have {heights} rows, expected the same number")
        if len(np.unique(self.columns[KEYS])) < heights[KEYS]:
            raise UsageError(f"table {self.name!r}: an id comes twice in {self.name}{KEYS}")
