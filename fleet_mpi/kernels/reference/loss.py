"""Losses that numpy would compute in many passes: of probabilities, of single logits, of labelled classes.

Arrays are lines (1-D, contiguous) but for the [rows, classes] of cross entropy.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel

# As in the original: the log of a probability of zero counts as this, not as infinity.
LARGEST = 1e20


@kernel
def cross_entropy(probabilities, labels, match, loss, ignore_index):
    """``match``, each row's probability of its label, and minus its log; 1 and 0 where the label is ``ignore_index``.

    Returns the position of the first label that names no class, or -1. Only the host looks for it.
    """
    xp = module_of(probabilities)
    ignored = labels == ignore_index
    wanted = xp.clip(labels, 0, probabilities.shape[1] - 1)
    chosen = xp.take_along_axis(probabilities, wanted.reshape(-1, 1), axis=1).reshape(-1)
    match[...] = xp.where(ignored, 1.0, chosen)
    floor = xp.where(match > 0.0, match, 1.0)
    loss[...] = xp.where(ignored, 0.0, xp.where(match > 0.0, -xp.log(floor), LARGEST))
    return -1


@kernel
def cross_entropy_backward(match, labels, dloss, dprobabilities, ignore_index):
    """-dloss / match at the label, zero elsewhere."""
    xp = module_of(match)
    classes = dprobabilities.shape[1]
    hit = xp.arange(classes).reshape(1, classes) == labels.reshape(-1, 1)
    share = xp.where(labels == ignore_index, 0.0, -dloss / match)
    dprobabilities[...] = xp.where(hit, share.reshape(-1, 1), 0.0)


@kernel
def log_loss(predicted, labels, loss, epsilon):
    """-y log(p + epsilon) - (1 - y) log(1 - p + epsilon)."""
    xp = module_of(predicted)
    loss[...] = -labels * xp.log(predicted + epsilon) - (1 - labels) * xp.log(1 - predicted + epsilon)


@kernel
def log_loss_backward(predicted, labels, dloss, dpredicted, epsilon):
    """(1 - y) / (1 - p + epsilon) - y / (p + epsilon), times dloss."""
    dpredicted[...] = dloss * ((1 - labels) / (1 - predicted + epsilon) - labels / (predicted + epsilon))


@kernel
def sigmoid_cross_entropy(x, labels, out, ignore_index):
    """max(x, 0) - x y + log(1 + e^-|x|); 0 where the label is ``ignore_index``."""
    xp = module_of(x)
    made = xp.maximum(x, 0.0) - x * labels + xp.log1p(xp.exp(-xp.abs(x)))
    out[...] = xp.where(labels == ignore_index, 0.0, made)


@kernel
def sigmoid_cross_entropy_backward(x, labels, dout, dx, ignore_index):
    """(sigmoid(x) - y) dout; 0 where the label is ``ignore_index``."""
    xp = module_of(x)
    small = xp.exp(-xp.abs(x))
    sigmoid = xp.where(x >= 0.0, 1.0, small) / (1.0 + small)
    dx[...] = xp.where(labels == ignore_index, 0.0, (sigmoid - labels) * dout)
