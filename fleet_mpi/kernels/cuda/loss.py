"""Losses of probabilities and of single logits for cupy's arrays, one launch each.

Cross entropy of labelled probabilities runs on a device as its reference does.
"""

from fleet_mpi.kernels.cuda.compiling import fits, launch
from fleet_mpi.kernels.reference import loss as reference

SOURCE = r"""
extern "C" __global__ void log_loss(const real *predicted, const real *labels, real *loss, real epsilon,
                                    long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const real p = predicted[i], y = labels[i];
        loss[i] = -y * log(p + epsilon) - (1 - y) * log(1 - p + epsilon);
    }
}

extern "C" __global__ void log_loss_backward(const real *predicted, const real *labels, const real *dloss,
                                             real *dpredicted, real epsilon, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const real p = predicted[i], y = labels[i];
        dpredicted[i] = dloss[i] * ((1 - y) / (1 - p + epsilon) - y / (p + epsilon));
    }
}

extern "C" __global__ void sigmoid_cross_entropy(const real *x, const real *labels, real *out, real ignored,
                                                 long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const real made = (x[i] < 0 ? real(0) : x[i]) - x[i] * labels[i] + log1p(exp(-fabs(x[i])));
        out[i] = labels[i] == ignored ? real(0) : made;
    }
}

extern "C" __global__ void sigmoid_cross_entropy_backward(const real *x, const real *labels, const real *dout,
                                                          real *dx, real ignored, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const real power = exp(-fabs(x[i])), sigmoid = (x[i] >= 0 ? real(1) : power) / (1 + power);
        dx[i] = labels[i] == ignored ? real(0) : (sigmoid - labels[i]) * dout[i];
    }
}
"""


def log_loss(predicted, labels, loss, epsilon):
    """Two reads and one write per element."""
    if fits(predicted, labels, loss):
        launch(SOURCE, "log_loss", loss.size, predicted, labels, loss, predicted.dtype.type(epsilon))
    else:
        reference.log_loss.reference(predicted, labels, loss, epsilon)


def log_loss_backward(predicted, labels, dloss, dpredicted, epsilon):
    """Three reads and one write per element."""
    if fits(predicted, labels, dloss, dpredicted):
        launch(SOURCE, "log_loss_backward", dloss.size, predicted, labels, dloss, dpredicted,
               predicted.dtype.type(epsilon))
    else:
        reference.log_loss_backward.reference(predicted, labels, dloss, dpredicted, epsilon)


def sigmoid_cross_entropy(x, labels, out, ignore_index):
    """Two reads and one write per element."""
    if fits(x, labels, out):
        launch(SOURCE, "sigmoid_cross_entropy", out.size, x, labels, out, x.dtype.type(ignore_index))
    else:
        reference.sigmoid_cross_entropy.reference(x, labels, out, ignore_index)


def sigmoid_cross_entropy_backward(x, labels, dout, dx, ignore_index):
    """Three reads and one write per element."""
    if fits(x, labels, dout, dx):
        launch(SOURCE, "sigmoid_cross_entropy_backward", dx.size, x, labels, dout, dx, x.dtype.type(ignore_index))
    else:
        reference.sigmoid_cross_entropy_backward.reference(x, labels, dout, dx, ignore_index)
