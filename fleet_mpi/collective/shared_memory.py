"""Sums in rank order between workers of one machine: nothing is sent, each adds up its share where the gradients lie.

The flat gradients of all workers are rows of one piece of shared memory. A worker says that its row is ready; when all
have said so, each adds up its share of the columns, in rank order, and writes the sum to every row. The bits are those
of ``exact``. Two counters a worker are all that is waited for, so a wait can be given up and names who is late.

The order in which one worker's writes are seen by another is that of x86; elsewhere messages are used.
"""

import errno
import mmap
import os
import platform
import secrets
from collections import deque

import numpy as np

from fleet_mpi import settings
from fleet_mpi.arrays import aligned
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.kernels.shared_sums import sum_everywhere

FOLDER = "/dev/shm"
COUNTERS_BYTES = 256   # of a worker and lane: two counters, far enough apart that no processor fetches both at once
ARRIVED, DONE = 0, COUNTERS_BYTES // 16
PAGE = 4096
SUMMED = (np.dtype(np.float32), np.dtype(np.float64))
LEFT_FREE = 64 << 20   # bytes: MPI's own segments lie in the same folder
_NAME_BYTES = 512


def move_in(reducers, group, nbytes, xp):
    """Collective: (reducers, home of ``nbytes`` of gradients): shared where that is possible and they sum in rank order.

    Else the reducers are as they were, and the home is None.
    """
    # What is the same for all decides whether they ask each other; what a worker's own environment says, is its answer.
    possible = (group.shares_memory and len(set(group.hosts)) == 1 and nbytes
                and all(type(one) is ExactAllReduce for one in reducers))
    willing = settings.get("FLEET_MPI_SHARED_MEMORY") and xp is np
    room = enter(group, nbytes, FOLDER if willing else "") if possible else None
    if room is None:
        return reducers, None
    return [SharedAllReduce(room, lane, one) for lane, one in enumerate(reducers)], room.mine


class Room:
    """The shared memory: row ``index`` of ``rows`` (uint8) is this worker's."""

    def __init__(self, memory, index, size, lanes, nbytes):
        self.index, self.size, self.nbytes = index, size, nbytes
        whole = np.frombuffer(memory, np.uint8)
        counted = counters_bytes(size, lanes)
        self.counters = memoryview(memory)[:counted].cast("q")
        row = -(-nbytes // PAGE) * PAGE
        self.rows = whole[counted:counted + size * row].reshape(size, row)
        self.mine = self.rows[index, :nbytes]
        self.address = self.mine.ctypes.data

    def place_of(self, array):
        """(rows of the array's type, first column, last column + 1), or None where the array is not in this worker's row."""
        start = array.__array_interface__["data"][0] - self.address
        if array.dtype not in SUMMED or not 0 <= start <= self.nbytes - array.nbytes:
            return None
        first = start // array.itemsize
        return self.rows.view(array.dtype), first, first + len(array)


def counters_bytes(size, lanes):
    """What the counters of all workers take, in whole pages."""
    return -(-size * lanes * COUNTERS_BYTES // PAGE) * PAGE


def enter(group, nbytes, folder=FOLDER):
    """Collective: a Room with ``nbytes`` for each worker of a group; None, for all, where one of them cannot enter.

    They are on several machines or in several containers, the folder is too small, or the processor is of another kind.
    A worker without a folder does not want to.
    """
    size = counters_bytes(group.size, len(group.lanes)) + group.size * (-(-nbytes // PAGE) * PAGE)
    name, memory = np.zeros(_NAME_BYTES, np.uint8), None
    folder = folder if platform.machine() == "x86_64" else ""
    path = b""
    if group.index == 0 and folder:
        memory, path = _make(folder, size)
        name[:len(path)] = np.frombuffer(path, np.uint8)
    try:
        told = bytes(group.gather([name])[0][0]).rstrip(b"\0")
        if group.index and folder and told:
            memory = _open(told, size)
        entered = group.gather([np.array([memory is not None])])
    finally:
        if path:
            os.unlink(path)
    if not all(one[0][0] for one in entered):
        return None
    return Room(memory, group.index, group.size, len(group.lanes), nbytes)


def _make(folder, size):
    """A new file and its memory; its room is taken now: later, a lack of it would end the process."""
    path = os.path.join(folder, f"fleet_mpi_{os.getpid()}_{secrets.token_hex(8)}").encode()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None, b""
    try:
        os.posix_fallocate(file, 0, size)
        left = os.fstatvfs(file)
        if left.f_bavail * left.f_frsize < LEFT_FREE:
            raise OSError(errno.ENOSPC, "what is left is MPI's")
        return mmap.mmap(file, size), path
    except OSError:
        os.unlink(path)
        return None, b""
    finally:
        os.close(file)


def _open(path, size):
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return mmap.mmap(file, size)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)


class SharedAllReduce:
    """Sums arrays that lie in a worker's row of a Room; others by ``messages``. All must start the same, in one order."""

    def __init__(self, room, lane, messages):
        self.room, self.messages = room, messages
        first = lane * room.size
        places = [(first + rank) * COUNTERS_BYTES // 8 for rank in range(room.size)]
        self.arrivals, self.ends = [one + ARRIVED for one in places], [one + DONE for one in places]
        self.started = self.summed = 0
        self.shares = deque()
        self.known = {}  # this worker's share by array: buckets are few, and come again and again

    def start(self, array):
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        share = self._share(array)
        if share is None:
            return self.messages.start(array)
        self.started += 1
        self.shares.append(share)
        self.room.counters[self.arrivals[self.room.index]] = self.started
        return _Reduction(self, self.started)

    def _share(self, array):
        key = array.__array_interface__["data"][0], len(array), array.dtype
        if key not in self.known:
            self.known[key] = self._cut(array)
        return self.known[key]

    def _cut(self, array):
        place = self.room.place_of(array)
        if place is None:
            return None
        rows, start, stop = place
        length = aligned(-(-(stop - start) // self.room.size))
        first = start + length * self.room.index
        return rows, min(first, stop), min(first + length, stop)

    def advance(self):
        """Add up this worker's share of every array that all have; returns whether there was one."""
        counters, happened = self.room.counters, False
        while self.shares and all([counters[place] > self.summed for place in self.arrivals]):
            sum_everywhere(*self.shares.popleft())
            self.summed += 1
            counters[self.ends[self.room.index]] = self.summed
            happened = True
        return happened

    def is_over(self, number):
        """Whether all have added up their shares of the array that was started as the ``number``-th."""
        counters = self.room.counters
        return all([counters[place] >= number for place in self.ends])

    def waits_for(self, number):
        """Those who have not come with an array; where all have, those who have not added up their share."""
        counters = self.room.counters
        late = [rank for rank, place in enumerate(self.arrivals) if counters[place] < number]
        return late or [rank for rank, place in enumerate(self.ends) if counters[place] < number]


class _Reduction:
    """One array."""

    __slots__ = ("group", "number")

    def __init__(self, group, number):
        self.group, self.number = group, number

    def advance(self):
        """Do what can be done now; returns whether anything was."""
        return self.group.advance()

    def is_over(self):
        """Whether the array is the sum, and nobody writes to it any more."""
        return self.group.is_over(self.number)

    def waits_for(self):
        """The ranks that have not done their part."""
        return self.group.waits_for(self.number)
