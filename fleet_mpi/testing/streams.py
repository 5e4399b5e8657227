"""The stand-in's streams: what is computed counts as not yet done, and copies are not done, until someone waits.

Computing itself happens at once, since nobody can look, after the copies to the device that its stream was told
before; the stream notes which memory was written. An array shows its address only when nothing of it is noted any
more: so code that hands memory to MPI without waiting fails here.
"""

import ctypes
import threading
from collections import deque

import numpy as np

# Only the last writes are kept: a test that never waits should not fill the memory.
MOST_WRITES = 1000


class Stream:
    """A queue of the device. ``todo`` are copies and marks, ``writes`` the memory that was computed: (turn, begin,
    end)."""

    def __init__(self, non_blocking=False):
        self.todo, self.writes, self.turn, self.ptr = [], deque(maxlen=MOST_WRITES), 0, id(self)
        self.before_computing = 0  # how many of ``todo`` change what is computed later: copies to the device, waits

    def note(self, values):
        """Memory was computed."""
        self.turn += 1
        self.writes.append((self.turn, *np.lib.array_utils.byte_bounds(values)))

    def do_before_computing(self, work):
        """Queue what must be done before anything that is computed here later."""
        self.before_computing += 1

        def done():
            self.before_computing -= 1
            work()
        self.todo.append(done)

    def catch_up(self):
        """Before something is computed here: do the copies to the device and the waits that come first."""
        while self.before_computing:
            self.todo.pop(0)()

    def may_write(self, values):
        """Whether something that was computed here may not be in this memory yet."""
        begin, end = np.lib.array_utils.byte_bounds(values)
        return any(low < end and begin < high for _, low, high in self.writes)

    def passed(self, turn):
        """All up to this turn is computed."""
        while self.writes and self.writes[0][0] <= turn:
            self.writes.popleft()

    def synchronize(self):
        """Do all that waits."""
        while self.todo:
            self.todo.pop(0)()
        self.passed(self.turn)

    def __enter__(self):
        self.before, _of_thread.stream = current_stream(), self
        return self

    def __exit__(self, *problem):
        _of_thread.stream = self.before

    def wait_event(self, event):
        """Later work waits for the event."""
        self.do_before_computing(event.synchronize)


class Event:
    """A point in a stream; it takes two looks to see that it has passed."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.stream, self.looks, self.has_passed = None, 0, True

    def record(self, stream=None):
        """Be after what is in the stream now."""
        self.stream = stream or current_stream()
        self.looks, self.has_passed, self.turn = 0, False, self.stream.turn
        self.stream.todo.append(self._pass)

    def _pass(self):
        self.has_passed = True
        self.stream.passed(self.turn)

    @property
    def done(self):
        """Whether the stream has come so far."""
        self.looks += 1
        if self.looks > 1:
            self.synchronize()
        return self.has_passed

    def synchronize(self):
        """Wait until it has."""
        while not self.has_passed:
            self.stream.todo.pop(0)()


class Memory:
    """What a device array's ``data`` is: an address, and copies that a stream will do."""

    def __init__(self, values):
        self.ptr, self._values = values.ctypes.data, values

    def copy_to_host_async(self, mem, size, stream=None):
        """Queue a copy to a host address."""
        (stream or current_stream()).todo.append(lambda: ctypes.memmove(mem, self.ptr, size))

    def copy_from_host_async(self, mem, size, stream=None):
        """Queue a copy from a host address."""
        stream = stream or current_stream()
        stream.note(self._values)
        stream.do_before_computing(lambda: ctypes.memmove(self.ptr, mem, size))


class Device:
    """The only device."""

    id, pci_bus_id = 0, "0000:00:00.0"

    def __init__(self, device=None):
        pass

    def use(self):
        """Compute there from now on."""


_of_thread = threading.local()


def current_stream():
    """The stream that computes: every thread has its own, as in cupy."""
    if not hasattr(_of_thread, "stream"):
        _of_thread.stream = Stream()
    return _of_thread.stream
