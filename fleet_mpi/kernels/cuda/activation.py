"""Passes over lines for cupy's arrays: relu backward and sigmoid, one launch each.

Halves are computed with in float32. erf runs on a device as its reference does.
"""

from fleet_mpi.kernels.cuda.compiling import FLOATS, fits, launch
from fleet_mpi.kernels.reference import activation

SOURCE = r"""
extern "C" __global__ void relu_backward(const stored *out, const stored *dout, stored *dx, long long size)
{
    FOR_MY_ELEMENTS(i, size)
        dx[i] = widen(out[i]) > 0 ? dout[i] : stored(0);
}

extern "C" __global__ void sigmoid(const stored *x, stored *out, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const real value = widen(x[i]), power = exp(-fabs(value));
        out[i] = narrow((value >= 0 ? real(1) : power) / (1 + power));
    }
}
"""


def relu_backward(out, dout, dx):
    """Two reads and one write per element."""
    if fits(out, dout, dx, dtypes=FLOATS):
        launch(SOURCE, "relu_backward", dx.size, out, dout, dx)
    else:
        activation.relu_backward.reference(out, dout, dx)


def relu_backward_in_place(out, grad):
    """The same kernel: a thread reads and writes its own elements only."""
    relu_backward(out, grad, grad)


def sigmoid(x, out):
    """One read and one write per element."""
    if fits(x, out, dtypes=FLOATS):
        launch(SOURCE, "sigmoid", x.size, x, out)
    else:
        activation.sigmoid.reference(x, out)


def sigmoid_in_place(values):
    """The same kernel."""
    sigmoid(values, values)
