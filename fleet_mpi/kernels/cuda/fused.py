"""Sums followed by relu for cupy's arrays, one launch each. Halves are computed with in float32."""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import FLOATS, bound, fits, launch
from fleet_mpi.kernels.cuda.summing import COLUMNS, SUM_OF_COLUMNS, THREADS
from fleet_mpi.kernels.reference import fused

# A NaN passes through the comparisons.
SOURCE = SUM_OF_COLUMNS + r"""
__device__ inline real relu(real value) { return value < 0 ? real(0) : value; }

extern "C" __global__ void add_relu(const stored *x, const stored *y, stored *out, long long size)
{
    FOR_MY_ELEMENTS(i, size)
        out[i] = narrow(relu(widen(x[i]) + widen(y[i])));
}

extern "C" __global__ void add_bias_relu(const stored *x, const stored *bias, stored *out, int channels,
                                         int inner, long long size)
{
    FOR_MY_ELEMENTS(i, size)
        out[i] = narrow(relu(widen(x[i]) + widen(bias[i / inner % channels])));
}

extern "C" __global__ void bias_relu_backward(const stored *out, const stored *dout, stored *dx, stored *dbias,
                                              int rows, int columns)
{
    real mine = 0;
    FOR_MY_ROWS(row, column, rows, columns) {
        const long long i = (long long)row * columns + column;
        dx[i] = widen(out[i]) > 0 ? dout[i] : stored(0);
        mine += widen(dx[i]);
    }
    add_up_columns(mine, dbias, columns);
}
"""


def add_relu(x, y, out):
    """Two reads and one write per element."""
    if fits(x, y, out, dtypes=FLOATS):
        launch(SOURCE, "add_relu", out.size, x, y, out)
    else:
        fused.add_relu.reference(x, y, out)


def add_relu_in_place(x, y):
    """The same kernel: a thread reads and writes its own elements only."""
    add_relu(x, y, x)


def add_bias_relu(x, bias, out):
    """The bias is read over and over, from the cache."""
    if fits(x, bias, out, dtypes=FLOATS):
        inner = x.shape[2] if x.ndim == 3 else 1
        launch(SOURCE, "add_bias_relu", out.size, x, bias, out, np.int32(x.shape[1]), np.int32(inner))
    else:
        fused.add_bias_relu.reference(x, bias, out)


def add_bias_relu_in_place(x, bias):
    """The same kernel."""
    add_bias_relu(x, bias, x)


def bias_relu_backward(out, dout, dx, dbias):
    """A block for some columns, which adds up their rows in a fixed order."""
    if fits(out, dout, dx, dbias, dtypes=FLOATS) and out.size:
        rows, columns = out.shape
        bound(SOURCE, "bias_relu_backward", -(-columns // COLUMNS), out, dout, dx, dbias, np.int32(rows),
              np.int32(columns), threads=THREADS)()
    else:
        fused.bias_relu_backward.reference(out, dout, dx, dbias)


def bias_relu_backward_in_place(out, grad, dbias):
    """The same kernel."""
    bias_relu_backward(out, grad, grad, dbias)
