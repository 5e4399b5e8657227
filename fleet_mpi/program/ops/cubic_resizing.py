"""Images of another size by cubic convolution: each new pixel from the four nearest old ones along each dimension."""

import numpy as np

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sampling_grids import INTERPOLATION, Interpolation, spatial

SHARPNESS = -0.75  # of Keys' cubic kernel, as in the original


@op("bicubic_interp", "X OutSize? SizeTensor* Scale?", attrs={**INTERPOLATION, "interp_method": "bicubic"},
    no_grad="OutSize SizeTensor Scale")
class CubicInterpolation:
    """Images [N, C, H, W] of another size; places outside count as the nearest pixel of the edge."""

    infer = Interpolation.infer

    def run(k):
        """Times a matrix for each dimension."""
        return weighed(k, k["X"], k["Out"], False)

    def grad(k):
        return weighed(k, k["Out@GRAD"], k["X@GRAD"], True)


def weighed(k, given, made, back):
    """The call that multiplies by the weights of each dimension, or by their transposes."""
    xp, tables = k.xp, []
    for axis in spatial(k):
        sizes = (made, given) if back else (given, made)
        weights = matrix(k, *(array.shape[axis] for array in sizes))
        tables.append((axis, xp.asarray((weights.T if back else weights).astype(made.dtype))))

    def run():
        value = given
        for axis, weights in tables:
            value = xp.moveaxis(xp.tensordot(weights, value, axes=([1], [axis])), 0, axis)
        xp.copyto(made, value)
    return run


def matrix(k, old, new):
    """[new, old]: the weights of the old places in each new one."""
    if k.attr("align_corners"):
        places = np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        places = (np.arange(new) + 0.5) * (old / new) - 0.5
    first, weights = np.floor(places).astype(np.int64), np.zeros((new, old))
    for tap in (-1, 0, 1, 2):
        near = np.clip(first + tap, 0, old - 1)
        np.add.at(weights, (np.arange(new), near), cubic(np.abs(places - first - tap)))
    return weights


def cubic(distance):
    """Keys' kernel: 1 at 0, 0 at 1 and from 2 on."""
    a = SHARPNESS
    inner = ((a + 2) * distance - (a + 3)) * distance ** 2 + 1
    outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, inner, np.where(distance < 2, outer, 0.0))
