"""Ops of program/ops/patches.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def patches(given, sizes, strides, paddings, dilations=(1, 1)):
    """A list for each image of its patches [C, row, column], from left to right and top to bottom."""
    up, left, down, right = paddings
    wide = np.pad(given, ((0, 0), (0, 0), (up, down), (left, right)))
    reach = [d * (s - 1) + 1 for d, s in zip(dilations, sizes)]
    tops = range(0, wide.shape[2] - reach[0] + 1, strides[0])
    lefts = range(0, wide.shape[3] - reach[1] + 1, strides[1])
    return [[image[:, top:top + reach[0]:dilations[0], first:first + reach[1]:dilations[1]]
             for top in tops for first in lefts] for image in wide]


def unfolded(inputs, attrs):
    found = patches(inputs["X"], attrs["kernel_sizes"], attrs["strides"], attrs["paddings"], attrs["dilations"])
    return {"Y": np.array([[one.reshape(-1) for one in image] for image in found]).swapaxes(1, 2)}


def in_rows(inputs, attrs):
    found = patches(inputs["X"], attrs["kernels"], attrs["strides"], attrs["paddings"])
    return {"Out": np.array([one.reshape(-1) for image in found for one in image])}


def unfold(shape, sizes, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1)):
    attrs = {"kernel_sizes": sizes, "strides": strides, "paddings": paddings, "dilations": dilations}
    return Case("unfold", {"X": x(*shape)}, attrs, unfolded, grads="X", by="Y", note=f"{sizes}of{shape}")


CASES = [
    unfold((2, 2, 3, 4), (2, 2)), unfold((1, 2, 4, 4), (2, 3), (2, 1), (1, 0, 1, 2)),
    unfold((1, 1, 5, 5), (2, 2), (2, 2), (0, 1, 0, 0), (2, 3)),
    Case("im2sequence", {"X": x(2, 2, 3, 3)}, {"kernels": (2, 2), "strides": (1, 1), "paddings": (0, 0, 0, 0)}, in_rows,
         grads="X", lods={"Out": [[4, 4]]}),
    Case("im2sequence", {"X": x(1, 1, 4, 3)}, {"kernels": (2, 1), "strides": (2, 2), "paddings": (1, 0, 1, 1)}, in_rows,
         grads="X", lods={"Out": [[6]]}, note="strides"),
]

test_forward, test_gradient, test_device = checks(CASES)


def test_the_documented_example_of_im2sequence():
    given = np.array([[[[6, 2, 1], [8, 3, 5], [0, 2, 6]], [[2, 4, 4], [6, 3, 0], [6, 4, 7]]],
                      [[[6, 7, 1], [5, 7, 9], [2, 4, 8]], [[1, 2, 1], [1, 3, 5], [9, 0, 8]]]], float)
    built = Built(Case("im2sequence", {"X": given}, {"kernels": [2, 2], "strides": [1, 1]},
                       {"Out": np.zeros((8, 8))}))
    found, = built.run(built.outputs["Out"])
    assert found[0].tolist() == [6, 2, 8, 3, 2, 4, 6, 3] and found[-1].tolist() == [7, 9, 4, 8, 3, 5, 0, 8]


def test_a_patch_larger_than_the_image_is_refused_while_building():
    value = static_data("value", [2, 1, 3, 3])
    with pytest.raises(ProgramError, match="fits into"):
        value.block.append_op("unfold", {"X": [value]}, {"Y": ["out"]}, {"kernel_sizes": [4, 1]})
