"""Passes over lines for cupy's arrays: relu backward and sigmoid, one launch each.

erf runs on a device as its reference does.
"""

from fleet_mpi.kernels.cuda.compiling import fits, launch
from fleet_mpi.kernels.reference import activation

SOURCE = r"""
extern "C" __global__ void relu_backward(const real *out, const real *dout, real *dx, long long size)
{
    FOR_MY_ELEMENTS(i, size)
        dx[i] = out[i] > 0 ? dout[i] : real(0);
}

extern "C" __global__ void sigmoid(const real *x, real *out, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const real power = exp(-fabs(x[i]));
        out[i] = (x[i] >= 0 ? real(1) : power) / (1 + power);
    }
}
"""


def relu_backward(out, dout, dx):
    """Two reads and one write per element."""
    if fits(out, dout, dx):
        launch(SOURCE, "relu_backward", dx.size, out, dout, dx)
    else:
        activation.relu_backward.reference(out, dout, dx)


def relu_backward_in_place(out, grad):
    """The same kernel: a thread reads and writes its own elements only."""
    relu_backward(out, grad, grad)


def sigmoid(x, out):
    """One read and one write per element."""
    if fits(x, out):
        launch(SOURCE, "sigmoid", x.size, x, out)
    else:
        activation.sigmoid.reference(x, out)


def sigmoid_in_place(values):
    """The same kernel."""
    sigmoid(values, values)
