"""A worker whose program computes on a device: its flat arrays there, beside those on the host that servers get.

Servers and the wire work on host memory. So a worker on a device has each flat array twice, laid out alike: on the
device, where its program computes in views of it, and in pinned host memory. Gradients are copied piece by piece while
the backward pass goes on, by a stream of their own; a step waits once, for the last of them. Parameters come back as
one copy on the stream that computes: what is computed next uses them, and nobody waits. Knows no scopes and no ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi.arrays import event_of, is_host, pinned_like
from fleet_mpi.collective.staging import new_stream

if TYPE_CHECKING:
    from types import ModuleType

    from fleet_mpi.arrays import Array, Rows
    from fleet_mpi.parameter_server.flat import FlatLayout

# A copy of this size costs a PCIe link some 200 us, and its start a few.
PIECE_BYTES = 4 << 20


class Downloads:
    """Copies to pinned host memory, on a stream of their own; ``wait`` waits for all that were begun."""

    def __init__(self, xp: ModuleType) -> None:
        self.xp, self.stream = xp, new_stream(xp)

    def begin(self, array: Array, host: np.ndarray) -> None:
        """Copy what was computed by now; the array must stay as it is until ``wait``."""
        self.stream.wait_event(event_of(self.xp, self.xp.cuda.get_current_stream()))
        array.data.copy_to_host_async(host.ctypes.data, array.nbytes, self.stream)

    def fetch(self, array: Array) -> np.ndarray:
        """A host array that has the values after ``wait``; what is computed next may overwrite the device's."""
        if is_host(array):
            return array
        array = self.xp.ascontiguousarray(array)
        host = pinned_like(array)
        self.begin(array, host)
        self.xp.cuda.get_current_stream().wait_event(event_of(self.xp, self.stream))
        return host

    def fetch_rows(self, rows: Rows) -> Rows:
        """Rows on the host, which are complete after ``wait``."""
        return type(rows)(self.fetch(rows.ids), self.fetch(rows.values), rows.height)

    def wait(self) -> None:
        """Return when all copies that were begun are done."""
        self.stream.synchronize()


class Piece(NamedTuple):
    """Neighbouring variables of a flat array that are copied together, and their bytes."""

    names: tuple[str, ...]
    start: int
    stop: int


class DeviceFlat:
    """A flat array on a device (``views``: its variables) and its counterpart ``host`` in pinned memory."""

    def __init__(self, layout: FlatLayout, downloads: Downloads, piece_bytes: int = PIECE_BYTES) -> None:
        self.downloads, self.xp = downloads, downloads.xp
        self.array = self.xp.zeros(layout.nbytes, np.uint8)
        self.host = pinned_like(self.array)
        self.host[...] = 0
        self.views = layout.views(self.array)
        self.pieces = cut(layout, piece_bytes)
        self._piece_of = {name: number for number, piece in enumerate(self.pieces) for name in piece.names}
        self._spread = None  # the event after the last copy from the host
        self.begin_step()

    def begin_step(self) -> None:
        """No variable is ready; forgets what a step that ended with an error has begun."""
        self._lacking = [len(piece.names) for piece in self.pieces]

    def ready(self, name: str) -> None:
        """A variable was computed, for the last time in this step; with the last one of its piece the copy begins."""
        number = self._piece_of[name]
        self._lacking[number] -= 1
        if not self._lacking[number]:
            self._download(number)

    def gather(self) -> None:
        """Let ``host`` have what is on the device: the copies that ``ready`` has not begun begin, all are awaited."""
        for number, lacking in enumerate(self._lacking):
            if lacking:
                self._download(number)
        self.downloads.wait()
        self.begin_step()

    def spread(self) -> None:
        """Let the device have what is in ``host``, before anything that is computed from now on; does not wait."""
        if self.array.nbytes:
            stream = self.xp.cuda.get_current_stream()
            self.array.data.copy_from_host_async(self.host.ctypes.data, self.array.nbytes, stream)
            self._spread = event_of(self.xp, stream)

    def settle(self) -> None:
        """Return when ``host`` may be overwritten: after a ``gather`` of what was computed since, at once."""
        if self._spread is not None and not self._spread.done:
            self._spread.synchronize()

    def _download(self, number):
        _, start, stop = self.pieces[number]
        self.downloads.begin(self.array[start:stop], self.host[start:stop])


class DeviceSide:
    """The flat arrays of a worker on a device. ``sent`` are the gradients or, where there are none (geo), the
    parameters."""

    def __init__(self, layout: FlatLayout, xp: ModuleType, sends_gradients: bool) -> None:
        self.downloads = Downloads(xp)
        self.params = DeviceFlat(layout, self.downloads)
        self.grads = DeviceFlat(layout, self.downloads) if sends_gradients else None
        self.sent = self.grads or self.params
        self.rows: list[tuple[str, Rows]] = []  # (table, row gradient) that are on their way to the host

    def begin_step(self) -> None:
        """Before a step."""
        self.sent.begin_step()
        self.rows = []

    def take_rows(self, table: str, rows: Rows) -> None:
        """Fetch a row gradient."""
        self.rows.append((table, self.downloads.fetch_rows(rows)))

    def gather(self) -> list[tuple[str, Rows]]:
        """Wait for all that servers are to get; returns the row gradients."""
        self.sent.gather()
        self.params.settle()
        rows, self.rows = self.rows, []
        return rows


def cut(layout: FlatLayout, piece_bytes: int) -> list[Piece]:
    """The layout's variables in pieces of about this size."""
    ends = [*layout.starts.values(), layout.nbytes][1:]
    pieces: list[Piece] = []
    for (name, start), end in zip(layout.starts.items(), ends):
        if pieces and end - pieces[-1].start <= piece_bytes:
            pieces[-1] = Piece((*pieces[-1].names, name), pieces[-1].start, end)
        else:
            pieces.append(Piece((name,), start, end))
    return pieces
