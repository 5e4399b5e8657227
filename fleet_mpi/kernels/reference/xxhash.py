"""XXH64 (Yann Collet's specification) of rows of integers: the hash by which ids find their buckets.

A row's bytes are those of its elements, little-endian, 4 or 8 bytes each. Whole columns are hashed at once; arithmetic
is modulo 2**64.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel

PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
TWO_TO_64 = 1 << 64


@kernel
def hash_rows(rows, seed, out):
    """Fill ``out``, uint64 [rows], with the hashes of the rows of an int32 or int64 matrix."""
    xp, size = module_of(rows), rows.shape[1] * rows.dtype.itemsize
    lanes, rest = _lanes(xp, rows)
    stripes = size // 32 * 4
    made = _striped(xp, lanes[:stripes], seed) if stripes else xp.full(
        (rows.shape[0],), (seed + PRIMES[4]) % TWO_TO_64, "uint64")
    made = made + size
    for lane in lanes[stripes:]:
        made = _turn(made ^ _round(0, lane), 27) * PRIMES[0] + PRIMES[3]
    if rest is not None:
        made = _turn(made ^ rest * PRIMES[0], 23) * PRIMES[1] + PRIMES[2]
    made = (made ^ made >> 33) * PRIMES[1]
    made = (made ^ made >> 29) * PRIMES[2]
    out[...] = made ^ made >> 32


def _lanes(xp, rows):
    """(the columns of 8 bytes each, the 4 bytes left over or None), as uint64."""
    if rows.dtype.itemsize == 8:
        words = rows.astype("uint64")
        return [words[:, i] for i in range(rows.shape[1])], None
    words = rows.astype("uint32").astype("uint64")
    pairs = rows.shape[1] // 2
    lanes = [words[:, 2 * i] | words[:, 2 * i + 1] << 32 for i in range(pairs)]
    return lanes, words[:, -1] if rows.shape[1] % 2 else None


def _striped(xp, lanes, seed):
    """Four sums over every fourth lane, then one of them."""
    first, second = PRIMES[:2]
    starts = [(seed + start) % TWO_TO_64 for start in (first + second, second, 0, -first)]
    sums = [xp.full(lanes[0].shape, start, "uint64") for start in starts]
    for i, lane in enumerate(lanes):
        sums[i % 4] = _round(sums[i % 4], lane)
    made = sum((_turn(one, by) for one, by in zip(sums[1:], (7, 12, 18))), _turn(sums[0], 1))
    for one in sums:
        made = (made ^ _round(0, one)) * first + PRIMES[3]
    return made


def _round(total, lane):
    return _turn(lane * PRIMES[1] + total, 31) * PRIMES[0]


def _turn(x, by):
    return x << by | x >> 64 - by
