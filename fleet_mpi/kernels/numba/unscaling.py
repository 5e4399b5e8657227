"""Loss scaling for host arrays: decisions on single numbers, which plain Python makes fastest; nothing is compiled."""

import numpy as np

from fleet_mpi.kernels.reference.unscaling import LARGEST


def zero_if(x, found, out):
    """Touches memory only where something changes."""
    if found[0]:
        out.fill(0)
    elif out is not x:
        np.copyto(out, x)


def next_scale(found, scale, good, bad, new_scale, new_good, new_bad, grow_every, shrink_every, growth, shrinkage):
    """On Python numbers."""
    size, good_now, bad_now = scale[0].item(), good[0].item() + 1, bad[0].item() + 1
    good_now, bad_now = (0, bad_now) if found[0] else (good_now, 0)
    if bad_now == shrink_every:
        size, bad_now = max(1.0, size * shrinkage), 0
    if good_now == grow_every:
        grown = size * growth
        size, good_now = (grown if grown < LARGEST else size), 0
    new_scale[0], new_good[0], new_bad[0] = size, good_now, bad_now
