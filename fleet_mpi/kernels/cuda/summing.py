"""Sums for cupy's arrays, one launch each, in an order that follows from the shape.

    lines       a block adds up a line: threads in strides, then a tree over the threads
    columns     a block adds up some columns of a matrix: LANES threads each, then their sums one after the other

Halves are added up in float32.
"""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import FLOATS, bound, fits, launch
from fleet_mpi.kernels.reference import summing

THREADS = 256
COLUMNS = 32  # of a block; neighbours in memory, so that a warp reads them at once
LANES = THREADS // COLUMNS

# The sum over the threads of a block, a power of two of them, as a tree; all threads get it.
SUM_OF_THREADS = r"""
__device__ inline real sum_of_threads(real mine)
{
    __shared__ real parts[512];
    const unsigned me = threadIdx.x;
    parts[me] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (me < half)
            parts[me] += parts[me + half];
        __syncthreads();
    }
    const real total = parts[0];
    __syncthreads();   // the next sum writes there
    return total;
}
"""

SUM_OF_COLUMNS = r"""
#define COLUMNS 32
#define LANES 8
#define FOR_MY_ROWS(row, column, rows, columns) \
    const int column = blockIdx.x * COLUMNS + threadIdx.x % COLUMNS; \
    for (int row = threadIdx.x / COLUMNS; row < (rows) && column < (columns); row += LANES)

__device__ inline void add_up_columns(real mine, stored *sums, int columns)
{
    __shared__ real parts[COLUMNS * LANES];
    parts[threadIdx.x] = mine;
    __syncthreads();
    const int column = blockIdx.x * COLUMNS + threadIdx.x;
    if (threadIdx.x < COLUMNS && column < columns) {
        real total = parts[threadIdx.x];
        for (int lane = 1; lane < LANES; lane++)
            total += parts[lane * COLUMNS + threadIdx.x];
        sums[column] = narrow(total);
    }
}
"""

SOURCE = SUM_OF_THREADS + SUM_OF_COLUMNS + r"""
extern "C" __global__ void mean_of_all(const stored *x, stored *out, long long size)
{
    real mine = 0;
    for (long long i = threadIdx.x; i < size; i += blockDim.x)
        mine += widen(x[i]);
    mine = sum_of_threads(mine);
    if (threadIdx.x == 0)
        *out = narrow(mine / size);
}

extern "C" __global__ void spread(const stored *value, stored *out, long long size)
{
    const stored share = narrow(widen(*value) / size);
    FOR_MY_ELEMENTS(i, size)
        out[i] = share;
}

extern "C" __global__ void sum_of_rows(const stored *x, stored *out, int rows, int columns)
{
    real mine = 0;
    FOR_MY_ROWS(row, column, rows, columns)
        mine += widen(x[(long long)row * columns + column]);
    add_up_columns(mine, out, columns);
}

extern "C" __global__ void sum_of_channels(const stored *x, stored *out, unsigned outer, unsigned channels,
                                           unsigned inner)
{
    real mine = 0;
    for (unsigned j = threadIdx.x; j < outer * inner; j += blockDim.x)
        mine += widen(x[((long long)(j / inner) * channels + blockIdx.x) * inner + j % inner]);
    mine = sum_of_threads(mine);
    if (threadIdx.x == 0)
        out[blockIdx.x] = narrow(mine);
}
"""
# One block adds up everything: means are those of losses, a number for each sample. Longer lines are left to cupy.
LONGEST_LINE = 1 << 20


def threads_for(count):
    """How many threads of a block add up so many numbers: a power of two, from one warp to 512."""
    return 1 << min(max(count - 1, 31).bit_length(), 9)


def mean_of_all(x, out):
    """One block."""
    if fits(x, out, dtypes=FLOATS) and 0 < x.size <= LONGEST_LINE:
        bound(SOURCE, "mean_of_all", 1, x, out, np.int64(x.size), threads=threads_for(x.size))()
    else:
        summing.mean_of_all.reference(x, out)


def spread(value, out):
    """One write per element."""
    if fits(value, out, dtypes=FLOATS):
        launch(SOURCE, "spread", out.size, value, out)
    else:
        summing.spread.reference(value, out)


def sum_of_rows(x, out):
    """A block for every 32 columns."""
    if fits(x, out, dtypes=FLOATS) and x.size:
        bound(SOURCE, "sum_of_rows", -(-x.shape[1] // COLUMNS), x, out, *map(np.int32, x.shape), threads=THREADS)()
    else:
        summing.sum_of_rows.reference(x, out)


def sum_of_channels(x, out):
    """A block for every channel."""
    if fits(x, out, dtypes=FLOATS) and 0 < x.size < 1 << 31:
        bound(SOURCE, "sum_of_channels", x.shape[1], x, out, *map(np.uint32, x.shape),
              threads=threads_for(x.shape[0] * x.shape[2]))()
    else:
        summing.sum_of_channels.reference(x, out)
