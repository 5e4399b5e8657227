"""Workers without servers: gradients are averaged over all, then each updates its own copies by a server within it.

Sums are in worker order and divided as servers do it, so that the bits are those of a job with servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.update_rules import merge

if TYPE_CHECKING:
    from fleet_mpi.connections.worker import WorkerConnection
    from fleet_mpi.door.sums import Sums


class Averaging:
    """One worker's part in the means of gradients."""

    def __init__(self, sums: Sums, connection: WorkerConnection) -> None:
        self.sums, self.connection = sums, connection
        client = connection.client
        self.lines = [client.grads[start:stop].view(dtype) for start, stop, dtype in client.layout.ranges]
        self.part = 1.0 / sums.group.size

    def average(self) -> None:
        """Collective: before an exchange, dense gradients and those of rows become the means over all workers."""
        self.sums.total(self.lines, "exact")
        for line in self.lines:
            np.multiply(line, self.part, out=line)
        rows = self.connection.rows
        for number, table in enumerate(self.connection.client.description.row_tables):
            rows[number] = self._mean(rows[number] or _none(table))

    def _mean(self, rows: Rows) -> Rows:
        found = self.sums.group.gather([rows.ids, rows.values])
        ids, values = (np.concatenate([part[i] for part in found]) for i in range(2))
        merged = merge(Rows(ids, values, rows.height))
        np.multiply(merged.values, self.part, out=merged.values)
        return merged


def _none(table: Any) -> Rows:
    return Rows(np.empty(0, np.int64), np.empty((0, table.width), table.dtype), table.shape[0])
