"""What a run moves between the host and a device: one copy there for each feed, one copy back for all that is fetched.

Feeds go through pinned memory straight into the arrays that the plan reads; nobody waits. Fetched values are gathered
on the device behind the note of wrong ids (``outside``), so that one copy and one wait bring both. Knows no names and
no ops.
"""

import weakref
from collections import deque
from itertools import accumulate

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.kernels.reference.rows import NOTE_SIZE

HEAD_BYTES = arrays.aligned(NOTE_SIZE * 8)  # the note, int64
# A larger value comes by a copy of its own: gathering it would cost as much memory again, and its copy takes longer
# than the wait.
LARGEST_GATHERED = 1 << 20
# Uploads of Transfers that are gone: a program may be dropped before the device has read what it was fed.
_orphans: deque = deque()


class Transfers:
    """The copies of one program's runs.

    ``note`` is where ops note on the device, ``note_on_host`` what it said at the last ``bring``.
    """

    def __init__(self, xp):
        self.xp = xp
        # (event, pinned memory) of copies to the device, oldest first: until the event has passed the memory must not
        # be anyone else's. Plans may be dropped before.
        self._uploads = deque()
        _drop_done(_orphans)
        weakref.finalize(self, _orphans.extend, self._uploads).atexit = False
        self._make(HEAD_BYTES)

    def upload(self, value, array):
        """Let a device array have a host array's values, for all that is computed from now on; does not wait."""
        if not array.flags.c_contiguous:
            array[...] = self.xp.asarray(value)
            return
        _drop_done(self._uploads)
        pinned, stream = arrays.pinned_like(array), self.xp.cuda.get_current_stream()
        pinned[...] = value
        array.data.copy_from_host_async(pinned.ctypes.data, array.nbytes, stream)
        self._uploads.append((arrays.event_of(self.xp, stream), pinned))

    def bring(self, values):
        """Wait for the device; returns the values with device arrays replaced by host arrays, and updates
        ``note_on_host``.

        The host arrays are overwritten by the next call. Large arrays, and what is no array, stay as they are.
        """
        brought, end = list(values), HEAD_BYTES
        places = []  # (index, first byte)
        for index, value in enumerate(values):
            if isinstance(value, type(self._device)) and value.nbytes <= LARGEST_GATHERED:
                places.append((index, end))
                end += arrays.aligned(value.nbytes)
        if end > self._device.size:
            self._grow(end)
        for index, start in places:
            self.xp.copyto(_cut(self._device, start, values[index]), values[index])
            brought[index] = _cut(self._host, start, values[index])
        stream = self.xp.cuda.get_current_stream()
        self._device.data.copy_to_host_async(self._host.ctypes.data, end, stream)
        stream.synchronize()
        return brought

    def _make(self, nbytes):
        self._device = self.xp.zeros(nbytes, np.uint8)
        self._host = arrays.pinned_like(self._device)
        self.note, self.note_on_host = (one[:NOTE_SIZE * 8].view(np.int64) for one in (self._device, self._host))

    def _grow(self, nbytes):
        note = self.note
        self._make(nbytes)
        self.xp.copyto(self.note, note)


def side_by_side(likes, make):
    """Memory of one piece, from ``make(shape, dtype)``, and its parts, each like one of these arrays."""
    starts = list(accumulate((arrays.aligned(like.nbytes) for like in likes), initial=0))
    raw = make((starts[-1],), np.uint8)
    return raw, [_cut(raw, start, like) for start, like in zip(starts, likes)]


def _drop_done(uploads):
    while uploads and uploads[0][0].done:
        uploads.popleft()


def _cut(raw, start, like):
    return raw[start:start + like.nbytes].view(like.dtype).reshape(like.shape)
