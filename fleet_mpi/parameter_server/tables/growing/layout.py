"""Where values and states are within a row of the slab: one behind the other, padded so that few lines are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import ALIGNMENT_BYTES, aligned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet_mpi.parameter_server.tables.growing.rules import GrowingRule


class RowLayout:
    """Columns of a slab: ``width`` values from 0 on, then ``states`` {name: (first column, how many)}."""

    def __init__(self, width: int, dtype: np.dtype, rule: GrowingRule, initial: Mapping[str, float]) -> None:
        self.width, self.dtype = width, dtype
        self.states: dict[str, tuple[int, int]] = {}
        used = width
        for state in rule.row_states:
            size = 1 if state.name in rule.one_per_row else width
            self.states[state.name] = used, size
            used += size
        self.used = used
        self.stride = stride_bytes(used * dtype.itemsize) // dtype.itemsize
        # What follows the values of a row that begins: states, then padding.
        self.rest = np.zeros(self.stride - width, dtype)
        for name, (column, size) in self.states.items():
            self.rest[column - width:column - width + size] = initial[name]

    @property
    def row_bytes(self) -> int:
        """Of a row with its padding."""
        return self.stride * self.dtype.itemsize


def stride_bytes(used: int) -> int:
    """The bytes from one row to the next: whole lines, or a power of two, so that no row straddles two lines."""
    return aligned(used) if used > ALIGNMENT_BYTES else 1 << max(used - 1, 1).bit_length()
