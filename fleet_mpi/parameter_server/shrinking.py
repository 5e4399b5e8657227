"""A server's part in dropping rows of a table that grows on request, while a worker has all servers frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.wire.protocol import Kind

if TYPE_CHECKING:
    from fleet_mpi.parameter_server.inbox import Inbox
    from fleet_mpi.parameter_server.server import Server
    from fleet_mpi.wire.protocol import Header


class Shrinking:
    """Handles SHRINK: [table, kind of eviction, its number]."""

    def __init__(self, server: Server) -> None:
        self.server, self.handlers = server, {Kind.SHRINK: self._shrink}

    def _shrink(self, inbox: Inbox, header: Header) -> None:
        snapshots = self.server.snapshots
        if inbox.index not in snapshots.freezers or not snapshots.is_alone:
            raise PeerLost(f"{inbox.name} wants rows to go, but has not frozen this server for itself")
        told = messages.decode(inbox.inline(header), inbox.name)
        if not isinstance(told, list) or [type(one) for one in told] != [str, str, int]:
            raise PeerLost(f"{inbox.name} wants rows to go by {told!r:.60}; expected a table, an eviction, a number")
        columns = self.server.table_of(told[0]).columns
        if columns is None:
            raise UsageError(f"table {told[0]!r} keeps every row, and is to shrink")
        gone = columns.evict(*told[1:])
        snapshots.stores += 1   # copies of this moment are of other rows
        self.server.answer(inbox, Kind.VALUES, np.array([gone], np.int64).tobytes())
