"""What the processes of a job with servers agree on, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fleet_mpi.parameter_server.description import Description
    from fleet_mpi.wire.transport import Transport


class Terms(NamedTuple):
    """One training over some workers and servers; ``fingerprint`` is compared between ranks."""

    description: Description
    endpoints: tuple[str, ...]            # the servers' labels
    workers: int = 1
    worker: int | None = None             # this worker's number; None: by rank order
    mode: str = "sync"
    options: dict[str, Any] = {}          # of the mode
    fingerprint: dict[str, Any] | None = None
    largest: int | None = None            # bytes of a message; None: as many as the protocol lets travel at once


class Uplink(NamedTuple):
    """A worker's way to its servers: its number, a transport, the servers' ranks, who a rank is."""

    worker: int
    transport: Transport
    servers: list[int]
    name_of: Callable[[int], str] = str
