"""What the wire gets for an array: the array itself, or a copy in pinned host memory where MPI cannot read the device.

A device computes behind the program's back: what an array holds is there only when its stream has come so far, and
MPI does not look. So an array on a device is handed over after an event of its stream has passed; where MPI is not
CUDA-aware, a stream of its own copies it to pinned host memory meanwhile, and back in the end. Host arrays pass as
they are. Works with whatever module the array is of; knows no MPI. Tried without a GPU only, on the stand-in of
``fleet_mpi.testing``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import event_of, is_host, module_of, pinned_like
from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.reducer import Reducer, Reduction


class Staged:
    """One contiguous array and its place on the wire, ``on_wire``: itself, or pinned memory (``pinned``, if given)."""

    def __init__(self, array: Array, is_aware: bool, stream: Any = None, pinned: np.ndarray | None = None) -> None:
        if not array.flags.c_contiguous:
            raise UsageError(f"staging: expected a contiguous array, got strides {array.strides} for {array.shape}")
        self.array, self.event = array, None
        self.xp = None if is_host(array) else module_of(array)
        self.is_copied = self.xp is not None and not is_aware
        self.stream = new_stream(self.xp) if self.is_copied and stream is None else stream
        self.on_wire = pinned_like(array, pinned) if self.is_copied else array

    def begin(self) -> None:
        """Let what was computed so far go to the wire's place; ``is_ready`` tells when it is there."""
        if self.xp is None:
            return
        self.event = event_of(self.xp, self.xp.cuda.get_current_stream())
        if self.is_copied:
            self.stream.wait_event(self.event)
            self.array.data.copy_to_host_async(self.on_wire.ctypes.data, self.array.nbytes, self.stream)
            self.event = event_of(self.xp, self.stream)

    def land(self) -> None:
        """Let the array have what is at the wire's place, beside what is computed; ``follow`` is to come before its
        use."""
        if self.is_copied:
            self.array.data.copy_from_host_async(self.on_wire.ctypes.data, self.array.nbytes, self.stream)
            self.event = event_of(self.xp, self.stream)

    def follow(self) -> None:
        """Let all that is computed from now on come after what was begun, or has landed; does not wait."""
        if self.is_copied:
            self.xp.cuda.get_current_stream().wait_event(self.event)

    def is_ready(self) -> bool:
        """Whether what was begun is done: the wire may read, or its place may be used for something else."""
        return self.event is None or self.event.done

    def outgoing(self) -> Array:
        """What to send, or to reduce in place: waits until it holds the array's values."""
        self.begin()
        if self.event is not None:
            self.event.synchronize()
        return self.on_wire

    def incoming(self) -> Array:
        """The array with what has come to ``on_wire``: waits until it is there."""
        if self.is_copied:
            self.stream.wait_event(event_of(self.xp, self.xp.cuda.get_current_stream()))
        self.land()
        if self.event is not None:
            self.event.synchronize()
        return self.array


class StagedAllReduce:
    """An all-reduce for arrays on a device, over one (``inner``) whose ``start`` takes what lies on the wire.

    Reductions begin in the order of ``start``, whatever order the copies are ready in: all ranks must agree on it.
    """

    def __init__(self, inner: Reducer, is_aware: bool = False) -> None:
        self.inner, self.is_aware = inner, is_aware
        self.stream = None
        self.waiting, self.unused = deque(), {}  # unused: pinned memory by size

    def start(self, array: Array) -> Reduction:
        """Begin to replace the array, on every rank, by the sum; returns what is to be advanced."""
        if is_host(array) and not self.waiting:
            return self.inner.start(array)
        staged = Staged(array, self.is_aware, self._stream_for(array), self._take(array.nbytes))
        staged.begin()
        made = StagedReduction(self, staged)
        self.waiting.append(made)
        self.start_ready()
        return made

    def start_ready(self) -> bool:
        """Start those whose values have come, up to the first whose have not; returns whether any was."""
        happened = False
        while self.waiting and self.waiting[0].staged.is_ready():
            first = self.waiting.popleft()
            first.inner = self.inner.start(first.staged.on_wire)
            happened = True
        return happened

    def give_back(self, staged: Staged) -> None:
        """Let another reduction have the pinned memory: its copies come after this one's, on the same stream."""
        if staged.is_copied:
            self.unused.setdefault(staged.array.nbytes, []).append(staged.on_wire)

    def _take(self, nbytes: int) -> np.ndarray | None:
        unused = self.unused.get(nbytes)
        return unused.pop() if unused else None

    def _stream_for(self, array: Array) -> Any:
        if self.stream is None and not is_host(array) and not self.is_aware:
            self.stream = new_stream(module_of(array))
        return self.stream


class StagedReduction:
    """One array: on its way to the wire, on the wire, and back."""

    def __init__(self, owner: StagedAllReduce, staged: Staged) -> None:
        self.owner, self.staged = owner, staged
        self.inner, self.has_landed, self.is_followed = None, False, False

    def advance(self) -> bool:
        """Do what can be done now; returns whether anything was."""
        if self.inner is None:
            return self.owner.start_ready()
        happened = self.inner.advance()
        if not self.has_landed and self.inner.is_over():
            self.staged.land()
            self.owner.give_back(self.staged)
            self.has_landed = happened = True
        return happened

    def is_over(self) -> bool:
        """Whether the array is the sum for all that is computed from now on; nobody waits for the copy."""
        if self.has_landed and not self.is_followed:
            self.staged.follow()
            self.is_followed = True
        return self.has_landed

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part; none while only this rank's device is awaited."""
        return [] if self.inner is None or self.has_landed else self.inner.waits_for()


def new_stream(xp: ModuleType) -> Any:
    """A stream whose copies do not wait for what is computed on the default one."""
    return xp.cuda.Stream(non_blocking=True)
