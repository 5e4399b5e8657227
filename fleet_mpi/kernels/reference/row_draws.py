"""First values of rows by counter: many rows in one call, each the same whoever draws it and when.

Row i of ``out`` ([ids, width]) is elements 0..width-1 of stream ``uint64(ids[i])`` of the draw of that name in
``random``, under the same key. Knows no tables.
"""

from fleet_mpi.arrays import to_host
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.reference import random


@kernel
def uniform(ids, out, key, low, high):
    """Values of [low, high)."""
    _each(random.uniform, ids, out, key, low, high)


@kernel
def normal(ids, out, key, mean, std):
    """Normal values."""
    _each(random.normal, ids, out, key, mean, std)


@kernel
def truncated_normal(ids, out, key, mean, std):
    """Normal values cut at two standard deviations."""
    _each(random.truncated_normal, ids, out, key, mean, std)


@kernel
def constant(ids, out, value):
    """The same value everywhere."""
    out[...] = value


def _each(draw, ids, out, key, *numbers):
    for i, stream in enumerate(to_host(ids).tolist()):
        draw.reference(out[i], key, stream % random.TWO_TO_64, 0, *numbers)
