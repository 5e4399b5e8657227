"""Dropout under its 2.x names (``paddle.nn.functional``): of elements, of whole channels, towards selu's lowest
value."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers import manipulation, nn
from fleet_mpi.program.layers.math import elementwise_mul
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.layers.tensor import ones_like

MODES = {"downscale_in_infer": "downgrade_in_infer"}  # as 2.x says, and as the op does


def dropout(x, p=0.5, axis=None, training=True, mode="upscale_in_train", name=None):
    """Each element zero with probability ``p``, the others scaled up; by ``axis``, whole slices along the others."""
    mode = MODES.get(mode, mode)
    if axis is None:
        return nn.dropout(x, p, is_test=not training, name=name, dropout_implementation=mode)
    kept = nn.dropout(ones_like(_smaller(x, axis)), p, is_test=not training, dropout_implementation=mode)
    return elementwise_mul(x, kept, name=name)


def _smaller(x, axis):
    """x with size 1 in all dimensions but those of ``axis``."""
    axes, rank = list(axis) if isinstance(axis, (list, tuple)) else [axis], len(x.shape)
    if not axes or any(not isinstance(one, int) or not 0 <= one < rank for one in axes):
        raise UsageError(f"dropout: axis: expected dimensions of {x.name!r} {x.shape}, 0 to {rank - 1}, got {axis!r}")
    others = [one for one in range(rank) if one not in axes]
    return manipulation.slice(x, others, [0] * len(others), [1] * len(others)) if others else x


def dropout2d(x, p=0.5, training=True, data_format="NCHW", name=None):
    """Each channel of each image zero with probability ``p``, the others scaled up."""
    return _of_channels("dropout2d", x, p, training, data_format, ("NCHW", "NHWC"), name)


def dropout3d(x, p=0.5, training=True, data_format="NCDHW", name=None):
    """Each channel of each volume zero with probability ``p``, the others scaled up."""
    return _of_channels("dropout3d", x, p, training, data_format, ("NCDHW", "NDHWC"), name)


def _of_channels(layer, x, p, training, data_format, known, name):
    if data_format not in known or len(x.shape) != len(known[0]):
        raise UsageError(f"{layer}: expected x of {len(known[0])} dimensions, {known[0]} or {known[1]}, got {x.shape} "
                         f"and {data_format!r}")
    return dropout(x, p, [0, data_format.index("C")], training, name=name)


def alpha_dropout(x, p=0.5, training=True, name=None):
    """Each element selu's lowest value with probability ``p``; mean 0 and variance 1 are kept."""
    return single_op("alpha_dropout", {"X": x}, {"dropout_prob": float(p), "is_test": not training}, also=("Mask",),
                     name=name)
