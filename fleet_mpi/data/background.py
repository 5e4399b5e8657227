"""Work done ahead of its consumer, in threads: bounded, stoppable from both ends, errors handed on.

Knows nothing of samples or files.
"""

import threading
from collections import deque

from fleet_mpi.errors import UsageError


class Channel:
    """A bounded queue between threads that either side can end.

    Any number of threads may put and iterate. ``capacity`` None means without bound.
    """

    def __init__(self, capacity=None):
        if capacity is not None and (not isinstance(capacity, int) or capacity < 1):
            raise UsageError(f"buffer size: expected a whole number of at least 1, got {capacity!r}")
        self._capacity = capacity
        self._items = deque()
        self._changed = threading.Condition()
        self._finished = False
        self._closed = False
        self._error = None

    def put(self, item):
        """Add an item, waiting for room; False when nobody will read it any more."""
        with self._changed:
            while not self._closed and self._capacity is not None and len(self._items) >= self._capacity:
                self._changed.wait()
            if self._closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def finish(self, error=None):
        """The producer's end: after the items that are left comes ``error``, or the end."""
        with self._changed:
            self._finished = True
            self._error = error
            self._changed.notify_all()

    def close(self):
        """The consumer's end: drop what is left and let waiting producers go."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    @property
    def is_finished(self):
        """Whether nothing more can be put."""
        return self._finished or self._closed

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return self

    def __next__(self):
        return self.take()

    def take(self, timeout_s=None):
        """The next item; waits for it, at most so long (TimeoutError). StopIteration at the end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._items or self._finished or self._closed, timeout_s):
                raise TimeoutError
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration


class Ahead:
    """Iterates over ``source()``, which a thread of its own reads ahead from the first moment on.

    An error of the source is raised here, at its place in the stream. Leaving early: ``close()``;
    a dropped object closes itself.
    """

    def __init__(self, source, capacity):
        self._channel = Channel(capacity)
        # The thread gets the channel, not self: else a dropped Ahead would never be collected.
        start_thread(fill, self._channel, source)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._channel)

    def close(self):
        """Stop reading; the source is closed in its own thread, after the item it is making."""
        self._channel.close()

    def __del__(self):
        if hasattr(self, "_channel"):
            self._channel.close()


def start_thread(work, *arguments):
    """Run ``work(*arguments)`` in a thread that does not keep the process alive."""
    thread = threading.Thread(target=work, args=arguments, name=f"fleet_mpi-{work.__name__}", daemon=True)
    thread.start()
    return thread


def fill(channel, source):
    """Put all items of ``source()`` into a channel, then its error or the end."""
    error = None
    try:
        iterator = iter(source())
        try:
            for item in iterator:
                if not channel.put(item):
                    break
        finally:
            if hasattr(iterator, "close"):
                iterator.close()
    except BaseException as problem:  # also SystemExit and the like: the consumer must not wait for ever
        error = problem
    channel.finish(error)
