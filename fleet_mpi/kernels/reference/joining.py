"""Arrays put together along an axis, and parted."""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def join(whole, pieces, axis):
    """Bind ``whole`` = the pieces, one behind the other along the axis."""
    concatenate = module_of(whole).concatenate
    return lambda: concatenate(pieces, axis=axis, out=whole)


@kernel
def part(whole, pieces, sizes, axis):
    """Bind every piece = its part of ``whole``, which has pieces of these sizes along the axis; None: is not wanted."""
    copy = module_of(whole).copyto
    pairs = [(piece, whole[index]) for piece, index in zip(pieces, cuts(axis, sizes)) if piece is not None]

    def run():
        for piece, own in pairs:
            copy(piece, own)
    return run


def cuts(axis, sizes):
    """An index for each of the pieces that lie one behind the other along an axis."""
    found, start = [], 0
    for size in sizes:
        found.append((slice(None),) * axis + (slice(start, start + size),))
        start += size
    return found
