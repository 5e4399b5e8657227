"""A worker whose program computes on a device: its parameters and gradients there, beside the flat arrays on the host.

Servers and the wire work on host memory. An executor on a device takes a variable of the scope there when it first
needs it, and leaves it there. So before an exchange the gradients are copied to the flat arrays, and afterwards the
parameters to the device, in place: compiled plans go on. Where all arrays are on the host nothing is copied. Knows
scopes by what they hold only.
"""

from typing import Any

import numpy as np

from fleet_mpi import arrays


class DeviceCopies:
    """Variables of a scope, each with its view of a flat array (``views``), and those of them that lie on a device."""

    def __init__(self, scope: Any, views: dict[str, np.ndarray]) -> None:
        self.scope, self.views = scope, views
        self._version: int | None = None
        self._moved: list = []

    def gather(self) -> None:
        """Let the views have what is on the device; returns when it is there."""
        for view, array in self.moved():
            view[...] = arrays.to_host(array)

    def spread(self) -> None:
        """Let the device have what is in the views."""
        for view, array in self.moved():
            array[...] = arrays.to_module(view, arrays.module_of(array))

    def moved(self):
        """(view, array) of the variables that lie on a device."""
        if self.scope.version != self._version:
            found = ((view, self.scope.array(name)) for name, view in self.views.items())
            self._moved = [(view, array) for view, array in found if array is not None and not arrays.is_host(array)]
            self._version = self.scope.version
        return self._moved


def rows_on_host(rows: arrays.Rows) -> arrays.Rows:
    """Rows as numpy computes with them: themselves, or copies from the device."""
    if arrays.is_host(rows.values):
        return rows
    return type(rows)(arrays.to_host(rows.ids), arrays.to_host(rows.values), rows.height)
