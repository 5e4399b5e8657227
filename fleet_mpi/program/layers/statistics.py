"""Layers that describe how values are distributed: median, histogram."""

from fleet_mpi.program.layers import manipulation, math
from fleet_mpi.program.layers.single_op import single_op


def median(x, axis=None, keepdim=False, name=None):
    """The middle element along an axis or of everything; of an even number, the mean of the middle two."""
    line = _floating(manipulation.reshape(x, [-1]) if axis is None else x)
    made = single_op("median", {"X": line}, {"axis": 0 if axis is None else int(axis), "keepdim": bool(keepdim)},
                     also=("Indices",), name=name)
    return manipulation.reshape(made, [1] * len(x.shape)) if keepdim and axis is None else made


def _floating(x):
    return x if x._dtype.kind == "f" else math.cast(x, "float32")


def histogram(input, bins=100, min=0, max=0):
    """How many elements lie in each of ``bins`` equal intervals; min == max: from the least to the largest, int64."""
    out = single_op("histogram", {"X": input}, {"bins": int(bins), "min": min, "max": max}, dtype="int64")
    out.stop_gradient = True
    return out
