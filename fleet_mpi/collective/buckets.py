"""Which gradients travel together: few long messages instead of one per variable, begun while backward still runs.

Gradients lie in one flat array in the order in which the backward pass makes them; a bucket is a run of it, and can
be sent when the last of its gradients is made. Sizes are counted from the end: the bucket that is full last is the one
that nothing overlaps with, and is kept small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from fleet_mpi.arrays import Array

MEGABYTE = 1 << 20


class Gradient(NamedTuple):
    """A dense gradient: its variable's name, shape and type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class Bucket(NamedTuple):
    """Gradients that are summed together: bytes ``start`` to ``stop`` of the flat array, all of one type."""

    names: tuple[str, ...]
    dtype: str
    start: int
    stop: int


def fuse(gradients: Sequence[Gradient], fuse_mb: float = 32, last_mb: float = 1) -> list[Bucket]:
    """Buckets of the gradients, which come in the order they are made.

    At most ``fuse_mb`` each, the last one ``last_mb``; a longer gradient is a bucket by itself. 0: no two together.
    """
    cut: list[list[Gradient]] = []
    room = last_mb * MEGABYTE
    for gradient in reversed(gradients):
        if cut and cut[-1][0].dtype == gradient.dtype and sum(one.nbytes for one in cut[-1]) + gradient.nbytes <= room:
            cut[-1].append(gradient)
        else:
            room = last_mb * MEGABYTE if not cut else fuse_mb * MEGABYTE
            cut.append([gradient])
    buckets, start = [], 0
    for members in reversed(cut):
        stop = start + sum(aligned(one.nbytes) for one in members)
        buckets.append(Bucket(tuple(one.name for one in reversed(members)), members[0].dtype, start, stop))
        start = stop
    return buckets


def size_of(buckets: Sequence[Bucket]) -> int:
    """Bytes of the flat array."""
    return buckets[-1].stop if buckets else 0


class FlatGradients:
    """The flat array, and where each gradient and bucket lies in it. Gaps are zeros: they are summed too.

    ``array``: bytes to lie in, as many as ``size_of`` says; new ones if there are none.
    """

    def __init__(self, gradients: Sequence[Gradient], buckets: Sequence[Bucket], xp: ModuleType = np,
                 array: Array | None = None) -> None:
        self.array = arrays.empty(size_of(buckets), np.uint8, xp) if array is None else array
        self.array[...] = 0
        self.views, sizes = {}, {one.name: one for one in gradients}
        for bucket in buckets:
            start = bucket.start
            for name in bucket.names:
                one = sizes[name]
                self.views[name] = self.array[start:start + one.nbytes].view(one.dtype).reshape(one.shape)
                start += aligned(one.nbytes)
        self.lines = [self.array[one.start:one.stop].view(one.dtype) for one in buckets]
