"""Gradients of several batches merged into one push, in memory of their own: a step goes on while they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import Rows
from fleet_mpi.update_rules import MergedRows, merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.parameter_server.flat import FlatLayout


class Merged:
    """The sum of some batches' gradients: a flat array like the client's, and rows merged by id."""

    def __init__(self, layout: FlatLayout) -> None:
        self.flat, self._ranges = arrays.empty(layout.nbytes, np.uint8), layout.ranges
        self.clear()

    def clear(self) -> None:
        """Forget what was merged; the memory stays."""
        self.count = 0
        self.rows: list[Rows | None] = []
        self.last: Any = None   # when the last gradients came, for those who say it

    def add(self, grads: np.ndarray, rows: Sequence[Rows | None], now: float | None = None) -> None:
        """Take a batch's gradients in, in the order of the calls; ``now`` is kept as the time of the last one."""
        if not self.count:
            self.flat[...] = grads
            self.rows = [_copied(one) for one in rows]
        else:
            for start, stop, dtype in self._ranges:
                total = self.flat[start:stop].view(dtype)
                np.add(total, grads[start:stop].view(dtype), out=total)
            self.rows = [_summed(known, more) for known, more in zip(self.rows, rows, strict=True)]
        self.count, self.last = self.count + 1, now

    def average(self) -> None:
        """Divide the sum by the number of batches; rows too, however many batches had each."""
        if self.count < 2:
            return
        for start, stop, dtype in self._ranges:
            total = self.flat[start:stop].view(dtype)
            np.multiply(total, 1.0 / self.count, out=total)
        for rows in self.rows:
            if rows is not None:
                np.multiply(rows.values, 1.0 / self.count, out=rows.values)


def _copied(rows: Rows | None) -> Rows | None:
    return None if rows is None else type(rows)(rows.ids.copy(), rows.values.copy(), rows.height)


def _summed(known: Rows | None, more: Rows | None) -> Rows | None:
    if known is None or more is None:
        return _copied(more) if known is None else known
    both = merge(Rows(np.concatenate([known.ids, more.ids]), np.concatenate([known.values, more.values]), more.height))
    return MergedRows(both.ids.copy(), both.values.copy(), both.height)
