"""Memory for messages whose length is the sender's word: one that is too long overruns nothing that matters.

Open MPI writes the whole of a message, past the end of the array it was to come to, before it says that this was too
short (5.0.11, over shared memory and TCP). To probe every message first would cost 3 us of a round trip that takes 30.
So these arrays lie where further on is nothing but other inboxes and then address space, which takes no memory until it
is written.
"""

from __future__ import annotations

import mmap
import resource

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.wire.protocol import LARGEST

_NO_RESERVE = 0x4000  # Linux: not counted as memory, where the system leaves that to programs
_STRICT = "2"


class Inboxes:
    """Gives out inboxes of one process; where address space is limited, arrays like any other."""

    def __init__(self, space: int = 2 * LARGEST) -> None:
        self.space = space
        self.line: np.ndarray | None = None
        self.begin = space

    def take(self, nbytes: int) -> np.ndarray:
        """An array of so many bytes with at least half of the space behind it."""
        if self.begin + nbytes > self.space // 2:
            self.line, self.begin = _address_space(self.space), 0
        if self.line is None:
            return arrays.empty(nbytes, np.uint8)
        start = self.begin
        self.begin += arrays.aligned(nbytes)
        return self.line[start:start + nbytes]


def _address_space(nbytes: int) -> np.ndarray | None:
    """Bytes that take no memory yet, or None where a limit counts them all the same."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY or _counts_promises():
        return None
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), np.uint8)
    except (OSError, ValueError):
        return None


def _counts_promises() -> bool:
    try:
        with open("/proc/sys/vm/overcommit_memory") as stream:
            return stream.read().strip() == _STRICT
    except OSError:
        return True
