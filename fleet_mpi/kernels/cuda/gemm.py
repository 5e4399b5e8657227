"""Products of many matrices as few calls of cuBLAS, whatever their strides.

cupy's own ``matmul`` copies operands that are not contiguous, and makes arrays of addresses where one matrix meets a
stack of others; cuBLAS needs neither.
"""

import os
from typing import NamedTuple

import numpy as np

# As CUDA and cuBLAS number them: the type of the elements, and the type that is computed with.
# Products of float16 numbers are summed in float32.
_TYPES = {"float16": (2, 68), "float32": (0, 68), "float64": (1, 70)}
_TF32 = 77
_DEFAULT_ALGORITHM = -1
# Factors are read by address when a call is made.
_FACTORS = {name: (np.zeros(1, kind), np.ones(1, kind)) for name, kind in (
    ("float16", "float32"), ("float32", "float32"), ("float64", "float64"))}


class Matrices(NamedTuple):
    """How [images, groups] matrices of one shape lie, in elements. ``by_columns``: element (i, j) is at j lead + i."""

    rows: int
    columns: int
    lead: int
    by_image: int
    by_group: int
    by_columns: bool = False


def product(xp, dtype, images, groups, left, right, out, add=False, made=None):
    """Bind out = left right, or out += left right, for all images and groups; returns a function of three addresses.

    It makes as many calls of cuBLAS as there are images, or groups, whichever are fewer. ``made`` is the type of out
    where it is not that of the factors: float32 for products of float16 numbers.
    """
    name, made = np.dtype(dtype).name, np.dtype(made or dtype)
    (kind, computed), (kind_made, _) = _TYPES[name], _TYPES[made.name]
    if kind == 0 and os.environ.get("CUPY_TF32", "0") not in ("", "0"):  # the switch that cupy's own products obey
        computed = _TF32
    zero, one = (factor.ctypes.data for factor in _FACTORS[name])
    count, calls = max(images, groups), min(images, groups)
    steps = [(each.by_image, each.by_group) for each in (left, right, out)]
    (left_step, right_step, out_step), moves = zip(*(steps if images >= groups else map(reversed, steps)))
    sizes = [np.dtype(dtype).itemsize] * 2 + [made.itemsize]
    moves = [[move * i * size for move, size in zip(moves, sizes)] for i in range(calls)]
    get_handle, call = xp.cuda.get_cublas_handle, xp.cuda.cublas.gemmStridedBatchedEx

    def run(left_at, right_at, out_at):
        handle = get_handle()
        # To cuBLAS, which lays matrices out by columns, these are transposed: so the factors change places.
        for left_move, right_move, out_move in moves:
            call(handle, int(right.by_columns), int(left.by_columns), out.columns, out.rows, left.columns, one,
                 right_at + right_move, kind, right.lead, right_step, left_at + left_move, kind, left.lead, left_step,
                 one if add else zero, out_at + out_move, kind_made, out.lead, out_step, count, computed,
                 _DEFAULT_ALGORITHM)
    return run
