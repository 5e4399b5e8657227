"""Softmax and what is computed along with it: its logarithm, and the cross entropy of logits.

Classes lie along axis 1 of [rows, classes] or [outer, classes, inner] arrays; labels and losses have the
shape without that axis. Every output may lie in the memory of an input of its shape.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel

# As in the original: no probability is below e^-64 times the largest, so its logarithm is finite.
LOWEST = -64.0


@kernel
def softmax(x, out):
    """e^x / sum of e^x, shifted by the largest x so that nothing overflows."""
    xp = module_of(x)
    out[...] = xp.exp(xp.maximum(_shifted(x), LOWEST))
    out /= out.sum(axis=1, keepdims=True)


@kernel
def softmax_backward(out, dout, dx):
    """dx = (dout - sum of dout out) out."""
    along = (dout * out).sum(axis=1, keepdims=True)
    dx[...] = (dout - along) * out


@kernel
def log_softmax(x, out):
    """x - log of the sum of e^x."""
    xp = module_of(x)
    shifted = _shifted(x)
    out[...] = shifted - xp.log(xp.exp(shifted).sum(axis=1, keepdims=True))


@kernel
def log_softmax_backward(out, dout, dx):
    """dx = dout - softmax times the sum of dout."""
    dx[...] = dout - module_of(out).exp(out) * dout.sum(axis=1, keepdims=True)


@kernel
def softmax_cross_entropy(logits, labels, probabilities, loss, ignore_index):
    """The softmax of the logits and minus the log of the labelled class's; 0 where the label is ``ignore_index``.

    A label more than 64 below the largest logit counts as 64 below, so the loss is finite when a model diverges.
    Returns the position of the first label that names no class, or -1. Only the host looks for it.
    """
    xp = module_of(logits)
    shifted = _shifted(logits)
    wanted = xp.expand_dims(xp.clip(labels, 0, logits.shape[1] - 1), 1)
    chosen = xp.maximum(xp.take_along_axis(shifted, wanted, axis=1).squeeze(1), LOWEST)
    total = xp.exp(shifted).sum(axis=1)
    loss[...] = xp.where(labels == ignore_index, 0.0, xp.log(total) - chosen)
    softmax.reference(logits, probabilities)
    return -1


@kernel
def softmax_cross_entropy_backward(probabilities, labels, dloss, dlogits, ignore_index):
    """dlogits = (probabilities - 1 at the label) dloss; 0 where the label is ``ignore_index``."""
    xp = module_of(probabilities)
    shape = [1] * probabilities.ndim
    shape[1] = probabilities.shape[1]
    hit = xp.arange(shape[1]).reshape(shape) == xp.expand_dims(labels, 1)
    share = xp.expand_dims(xp.where(labels == ignore_index, 0.0, dloss), 1)
    dlogits[...] = (probabilities - hit) * share


@kernel
def soft_cross_entropy(logits, targets, probabilities, loss):
    """The softmax of the logits and minus the sum of targets times its logarithm, which is at least that of e^-64."""
    xp = module_of(logits)
    shifted = xp.maximum(_shifted(logits), LOWEST)
    log_total = xp.log(xp.exp(shifted).sum(axis=1, keepdims=True))
    loss[...] = (targets * (log_total - shifted)).sum(axis=1)
    softmax.reference(logits, probabilities)


@kernel
def soft_cross_entropy_backward(probabilities, targets, dloss, dlogits):
    """dlogits = (probabilities - targets) dloss, for targets that sum to one."""
    dlogits[...] = (probabilities - targets) * module_of(dloss).expand_dims(dloss, 1)


def _shifted(x):
    return x - x.max(axis=1, keepdims=True)
