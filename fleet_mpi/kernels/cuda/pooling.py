"""Pooling for cupy's arrays: one launch each, every output and every gradient by one thread.

Gradients are gathered: a place of the data looks at the windows that cover it, in a fixed order. Where windows begin
and end is uploaded once, when a kernel is bound. Halves are computed with in float32.
"""

import math

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels.cuda.compiling import FLOATS, blocks_for, bound, fits
from fleet_mpi.kernels.reference import pooling
from fleet_mpi.kernels.reference.pooling import check_shapes, three
from fleet_mpi.kernels.widening import wide_type

# ``bounds`` are, for each of three dimensions, the first and the end of a range for every position along it: of the
# places in a window forward, of the windows over a place backward.
SOURCE = r"""
struct Extents { int from[3], to[3]; };

struct Ranges { int first[3], end[3]; };

// The ranges of position i, and the plane it belongs to.
__device__ inline long long ranges_of(long long i, const int *from, const int *bounds, Ranges &found)
{
    for (int axis = 2; axis >= 0; axis--) {
        const int at = i % from[axis], *mine = bounds;
        i /= from[axis];
        for (int before = 0; before < axis; before++)
            mine += 2 * from[before];
        found.first[axis] = mine[at];
        found.end[axis] = mine[from[axis] + at];
    }
    return i;
}

#define FOR_THE_RANGES(r, d, h, w) \
    for (int d = r.first[0]; d < r.end[0]; d++) \
        for (int h = r.first[1]; h < r.end[1]; h++) \
            for (int w = r.first[2]; w < r.end[2]; w++)

extern "C" __global__ void max_pool_forward(const stored *x, stored *out, int *index, const int *bounds, Extents e,
                                            real lowest, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        Ranges r;
        const stored *plane = x + ranges_of(i, e.from, bounds, r) * e.to[0] * e.to[1] * e.to[2];
        real best = lowest;
        int place = -1;
        FOR_THE_RANGES(r, d, h, w) {
            const int here = (d * e.to[1] + h) * e.to[2] + w;
            const real value = widen(plane[here]);
            if (place < 0 || value > best || value != value) {
                best = value;
                place = here;
            }
        }
        out[i] = narrow(best);
        index[i] = place;
    }
}

extern "C" __global__ void max_pool_backward(const stored *dout, const int *index, stored *dx, const int *bounds,
                                             Extents e, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        Ranges r;
        const long long windows = ranges_of(i, e.from, bounds, r) * e.to[0] * e.to[1] * e.to[2];
        const int here = i % ((long long)e.from[0] * e.from[1] * e.from[2]);
        real total = 0;
        FOR_THE_RANGES(r, d, h, w) {
            const long long window = windows + (d * e.to[1] + h) * e.to[2] + w;
            if (index[window] == here)
                total += widen(dout[window]);
        }
        dx[i] = narrow(total);
    }
}

extern "C" __global__ void avg_pool_forward(const stored *x, stored *out, const real *shares, const int *bounds,
                                            Extents e, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        Ranges r;
        const stored *plane = x + ranges_of(i, e.from, bounds, r) * e.to[0] * e.to[1] * e.to[2];
        real total = 0;
        FOR_THE_RANGES(r, d, h, w)
            total += widen(plane[(d * e.to[1] + h) * e.to[2] + w]);
        out[i] = narrow(total * shares[i % ((long long)e.from[0] * e.from[1] * e.from[2])]);
    }
}

extern "C" __global__ void avg_pool_backward(const stored *dout, stored *dx, const real *shares, const int *bounds,
                                             Extents e, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        Ranges r;
        const long long windows = ranges_of(i, e.from, bounds, r) * e.to[0] * e.to[1] * e.to[2];
        real total = 0;
        FOR_THE_RANGES(r, d, h, w) {
            const int window = (d * e.to[1] + h) * e.to[2] + w;
            total += widen(dout[windows + window]) * shares[window];
        }
        dx[i] = narrow(total);
    }
}
"""
EXTENTS = np.dtype((np.void, 6 * 4))


def max_pool_forward(x, out, index, windows):
    """Bind one launch, a thread for each window."""
    if not _usable(x, out, index):
        return pooling.max_pool_forward.reference(x, out, index, windows)
    check_shapes(x, out, windows)
    lowest = np.finfo(wide_type(x.dtype)).min
    return _bound("max_pool_forward", out.size, (x, out, index), three(windows), over_windows, lowest)


def max_pool_backward(dout, index, dx, windows):
    """Bind one launch, a thread for each place of the data."""
    if not _usable(dout, dx, index):
        return pooling.max_pool_backward.reference(dout, index, dx, windows)
    return _bound("max_pool_backward", dx.size, (dout, index, dx), three(windows), over_places)


def avg_pool_forward(x, out, windows):
    """Bind one launch, a thread for each window."""
    if not _usable(x, out):
        return pooling.avg_pool_forward.reference(x, out, windows)
    check_shapes(x, out, windows)
    shares = pooling.shares(three(windows), wide_type(x.dtype), module_of(x))
    return _bound("avg_pool_forward", out.size, (x, out, shares), three(windows), over_windows)


def avg_pool_backward(dout, dx, windows):
    """Bind one launch, a thread for each place of the data."""
    if not _usable(dout, dx):
        return pooling.avg_pool_backward.reference(dout, dx, windows)
    check_shapes(dx, dout, windows)
    shares = pooling.shares(three(windows), wide_type(dx.dtype), module_of(dx))
    return _bound("avg_pool_backward", dx.size, (dout, dx, shares), three(windows), over_places)


def over_windows(windows):
    """For every window: its first place, and its end; positions are windows, what is looked at are places."""
    counts, sizes = [len(each.starts) for each in windows], [each.size for each in windows]
    return counts, sizes, [edge for each in windows for edge in (each.starts, each.ends)]


def over_places(windows):
    """For every place: the first window that covers it, and the end of those that do. Windows are in order."""
    counts, sizes = [len(each.starts) for each in windows], [each.size for each in windows]
    bounds = []
    for each in windows:
        places = np.arange(each.size)
        bounds += [np.searchsorted(each.ends, places, "right"), np.searchsorted(each.starts, places, "right")]
    return sizes, counts, bounds


def _bound(name, size, arrays, windows, ranges, *numbers):
    start, looked_at, bounds = ranges(windows)
    xp = module_of(arrays[0])
    extents = np.frombuffer(np.int32([*start, *looked_at]).tobytes(), EXTENTS)
    uploaded = xp.asarray(np.concatenate(bounds).astype(np.int32))
    return bound(SOURCE, name, blocks_for(size), *arrays, uploaded, extents, *numbers, np.int64(size))


def _usable(first, second, index=None):
    """Whether the source can work on these; places in a plane are counted in 32 bits."""
    return (fits(first, second, dtypes=FLOATS) and first.size > 0 and second.size > 0
            and math.prod(first.shape[2:]) < 1 << 31
            and (index is None or index.dtype == np.int32 and index.flags.c_contiguous))
