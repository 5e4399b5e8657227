"""Ops of program/ops/deformable.py."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def between(plane, y, x):
    """One value of a plane, zero outside, linear between pixels."""
    total, top, left = 0.0, math.floor(y), math.floor(x)
    for row in (top, top + 1):
        for column in (left, left + 1):
            if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
                total += plane[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def deformed(inputs, attrs):
    """Number by number."""
    image, offset, weight = inputs["Input"], inputs["Offset"], inputs["Filter"]
    (n, channels), (count, width, high, wide) = image.shape[:2], weight.shape
    per_group = channels // attrs["deformable_groups"]
    out = np.zeros((n, count) + offset.shape[2:])
    for b, f, row, column in np.ndindex(out.shape):
        first = f // (count // attrs["groups"]) * width
        for c, i, j in np.ndindex(width, high, wide):
            group, point = (first + c) // per_group, i * wide + j
            dy, dx = offset[b, 2 * (group * high * wide + point):][:2, row, column]
            y, x = (at * stride - pad + step * dilation + d for at, stride, pad, step, dilation, d in zip(
                (row, column), attrs["strides"], attrs["paddings"], (i, j), attrs["dilations"], (dy, dx)))
            share = inputs["Mask"][b, group * high * wide + point, row, column] if "Mask" in inputs else 1.0
            out[b, f, row, column] += weight[f, c, i, j] * share * between(image[b, first + c], y, x)
    return {"Output": out}


def case(modulated, groups=1, deformable_groups=1, stride=1, pad=0, dilation=1):
    image, weight = rng.normal(size=(1, 4, 4, 3)), rng.normal(size=(2, 4 // groups, 2, 2))
    size = [(extent + 2 * pad - dilation - 1) // stride + 1 for extent in (4, 3)]
    inputs = {"Input": image, "Offset": rng.uniform(-1.4, 1.4, (1, 8 * deformable_groups, *size)), "Filter": weight}
    if modulated:
        inputs["Mask"] = rng.uniform(0, 1, (1, 4 * deformable_groups, *size))
    attrs = {"strides": [stride] * 2, "paddings": [pad] * 2, "dilations": [dilation] * 2, "groups": groups,
             "deformable_groups": deformable_groups}
    return Case("deformable_conv" if modulated else "deformable_conv_v1", inputs, attrs, deformed,
                grads=" ".join(inputs), by="Output", note=f"{groups}{deformable_groups}{stride}{pad}{dilation}")


CASES = [case(True, 2, 2), case(True, 1, 2, 2, 1, 2), case(False, 2, 1, 2, 1)]

test_forward, test_gradient, test_device = checks(CASES)


def test_offsets_of_another_size_are_refused_while_building():
    image, offset, weight = (static_data(name, shape) for name, shape in (
        ("image", [2, 4, 4, 4]), ("offset", [2, 8, 4, 4]), ("weight", [2, 4, 2, 2])))
    with pytest.raises(ProgramError, match=r"expected Offset \[N, 8, 3, 3\]"):
        image.block.append_op("deformable_conv_v1", {"Input": [image], "Offset": [offset], "Filter": [weight]},
                              {"Output": ["out"]})
