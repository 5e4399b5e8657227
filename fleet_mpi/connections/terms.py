"""What the processes of a job with servers agree on, as plain data."""

from collections.abc import Callable
from typing import Any, NamedTuple

from fleet_mpi.parameter_server.description import Description


class Terms(NamedTuple):
    """One training over some workers and servers; ``fingerprint`` is compared between ranks."""

    description: Description
    endpoints: tuple[str, ...]            # the servers' labels
    workers: int = 1
    worker: int | None = None             # this worker's number; None: by rank order
    mode: str = "sync"
    options: dict[str, Any] = {}          # of the mode
    fingerprint: dict[str, Any] | None = None


class Uplink(NamedTuple):
    """A worker's way to its servers: its number, a transport, the servers' ranks, who a rank is."""

    worker: int
    transport: Any
    servers: list[int]
    name_of: Callable[[int], str] = str
