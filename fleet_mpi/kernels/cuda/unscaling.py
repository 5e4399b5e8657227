"""Loss scaling for cupy's arrays: one launch for all gradients, and one for the scale; the flag stays on the device."""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import FLOATS, fits, launch
from fleet_mpi.kernels.cuda.tables import MINE, bound_over, go_together
from fleet_mpi.kernels.reference import unscaling

# x - x is zero for finite numbers only. All threads that find one write the same byte.
SOURCE = r"""
extern "C" __global__ void unscale(const stored *x, const stored *inverse, bool *found, stored *out, long long size)
{
    const real factor = widen(*inverse);
    FOR_MY_ELEMENTS(i, size) {
        const real value = widen(x[i]);
        if (!(value - value == 0))
            *found = true;
        out[i] = narrow(value * factor);
    }
}

extern "C" __global__ void zero_if(const stored *x, const bool *found, stored *out, long long size)
{
    if (!*found && x == out)
        return;
    FOR_MY_ELEMENTS(i, size)
        out[i] = *found ? 0 : x[i];
}
"""

# The same over a table of gradients.
TABLE_SOURCE = MINE + r"""
extern "C" __global__ void unscale_all(const long long *table, const int *pieces, const real *scale, bool *found)
{
    const Mine<2> mine(table, pieces);
    const real *x = mine.array(0), inverse = 1 / *scale;
    real *out = mine.array(1);
    FOR_MY_PIECE(i, mine) {
        const real value = x[i];
        if (!(value - value == 0))
            *found = true;
        out[i] = value * inverse;
    }
}

extern "C" __global__ void zero_all_if(const long long *table, const int *pieces, const bool *found)
{
    const Mine<2> mine(table, pieces);
    const real *x = mine.array(0);
    real *out = mine.array(1);
    if (!*found && x == out)
        return;
    FOR_MY_PIECE(i, mine)
        out[i] = *found ? 0 : x[i];
}
"""

# By one thread, in double: the host counts with Python's numbers.
SCALE_SOURCE = r"""
extern "C" __global__ void next_scale(const real *scale, const bool *found, const int *good, const int *bad,
                                      real *new_scale, int *new_good, int *new_bad, int grow_every, int shrink_every,
                                      double growth, double shrinkage, double largest, long long size)
{
    if (blockIdx.x || threadIdx.x)
        return;
    const int good_now = *found ? 0 : *good + 1, bad_now = *found ? *bad + 1 : 0;
    const bool grows = good_now == grow_every, shrinks = bad_now == shrink_every;
    double next = *scale;
    if (shrinks)
        next = next * shrinkage > 1.0 ? next * shrinkage : 1.0;
    else if (grows && next * growth < largest)
        next *= growth;
    *new_scale = next;
    *new_good = grows ? 0 : good_now;
    *new_bad = shrinks ? 0 : bad_now;
}
"""


def unscale(x, inverse, found, out):
    """One read and one write per element."""
    if fits(x, out, dtypes=FLOATS):
        launch(SOURCE, "unscale", x.size, x, inverse.astype(x.dtype, copy=False), found, out)
    else:
        unscaling.unscale.reference(x, inverse, found, out)


def zero_if(x, found, out):
    """No memory is touched after a good step, where ``out`` is ``x``."""
    if fits(x, out, dtypes=FLOATS):
        launch(SOURCE, "zero_if", x.size, x, found, out)
    else:
        unscaling.zero_if.reference(x, found, out)


def unscale_all(found, scale, arrays, outs):
    """Bind one launch, behind the flag's zero."""
    lines = list(zip(arrays, outs))
    if not go_together(lines, like=scale):
        return unscaling.unscale_all.reference(found, scale, arrays, outs)
    run = bound_over(TABLE_SOURCE, "unscale_all", lines, scale, found)
    return lambda: (found.fill(False), run())


def zero_all_if(found, arrays, outs):
    """Bind one launch; no memory is touched after a good step, where every ``out`` is its array."""
    lines = list(zip(arrays, outs))
    if not go_together(lines):
        return unscaling.zero_all_if.reference(found, arrays, outs)
    return bound_over(TABLE_SOURCE, "zero_all_if", lines, found)


def next_scale(found, scale, good, bad, new_scale, new_good, new_bad, grow_every, shrink_every, growth, shrinkage):
    """One launch."""
    counters = (good, bad, new_good, new_bad)
    if fits(scale, new_scale) and fits(*counters, dtypes=("int32",)):
        launch(SCALE_SOURCE, "next_scale", 1, scale, found, good, bad, new_scale, new_good, new_bad,
               np.int32(grow_every), np.int32(shrink_every), np.float64(growth), np.float64(shrinkage),
               np.float64(unscaling.LARGEST))
    else:
        unscaling.next_scale.reference(found, scale, good, bad, new_scale, new_good, new_bad, grow_every, shrink_every,
                                       growth, shrinkage)
