"""The queue between a loader and the executor, as scripts see it: ``loader.queue``.

A loader's thread fills it, or the script itself does (``push`` in a thread of its own, ``close`` at the end). Knows
feeds as dictionaries and nothing of samples.
"""

from fleet_mpi.data.background import Channel, fill, start_thread


class BatchQueue:
    """Up to ``capacity`` feeds of one pass, and the end of that pass."""

    def __init__(self, capacity, as_feed):
        self._capacity, self._as_feed = capacity, as_feed
        self._channel = Channel(capacity)
        self.is_open = False

    def fill(self, source):
        """Begin a pass over ``source()``; what was left of another one is dropped."""
        self._renew()
        # The thread gets the channel, not self: else the queue of a dropped loader would never be collected.
        start_thread(fill, self._channel, source)

    def push(self, batch):
        """Add a batch, a list of tensors or arrays, waiting for room; False once the queue was killed."""
        self.is_open = True
        return self._channel.put(self._as_feed(batch))

    def close(self):
        """End the pass after the batches that are left."""
        self._channel.finish()

    def kill(self):
        """End the pass now, with the batches that are left."""
        self._channel.close()

    def reset(self):
        """Drop everything; the next ``fill`` or ``push`` begins a pass."""
        self._renew()
        self.is_open = False

    def size(self):
        """How many batches wait."""
        return len(self._channel)

    def capacity(self):
        """How many batches may wait."""
        return self._capacity

    cap = capacity

    def is_closed(self):
        """Whether no more batches will be added."""
        return self._channel.is_finished

    def pop(self):
        """The next batch; StopIteration at the end of the pass."""
        return next(self._channel)

    def _renew(self):
        self._channel.close()
        self._channel = Channel(self._capacity)
        self.is_open = True

    def __del__(self):
        if hasattr(self, "_channel"):
            self._channel.close()
