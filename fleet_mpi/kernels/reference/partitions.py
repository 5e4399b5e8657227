"""Partitions of all 64-bit ids, by the upper bits of the hash of ``row_index``: which server has the row of an id.

The number of partitions is fixed, so what is said of a partition holds for any number of servers; a server has
neighbouring partitions. Ids of one server stay spread in the hash's lower bits. Knows no rows.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.reference.row_index import FACTORS, SHIFTS

BITS = 10   # 1024 partitions


def partitions_of(ids):
    """The partition of each id, int64."""
    hashed = ids.astype("uint64")
    for shift, factor in zip(SHIFTS, FACTORS):
        hashed = (hashed ^ hashed >> shift) * factor
    return ((hashed ^ hashed >> SHIFTS[-1]) >> 64 - BITS).astype("int64")


@kernel
def split_by_partition(ids, counts, local, order):
    """Sort ids by the server that has their partition, keeping their order otherwise.

    There are as many servers as ``counts`` is long. Fills ``counts`` per server, ``local`` with the ids and ``order``
    with the positions they were at.
    """
    xp = module_of(ids)
    owner = partitions_of(ids) * counts.shape[0] >> BITS
    # Made unique, so that no stable sort is needed.
    order[...] = xp.argsort(owner * (ids.shape[0] + 1) + xp.arange(ids.shape[0], dtype="int64"))
    local[...] = ids[order]
    counts[...] = xp.bincount(owner, minlength=counts.shape[0])
