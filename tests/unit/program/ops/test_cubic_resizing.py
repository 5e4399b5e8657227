"""Ops of program/ops/cubic_resizing.py."""

import math

import numpy as np

from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def weight(distance, a=-0.75):
    """Keys' cubic kernel, as it stands in textbooks."""
    t = abs(distance)
    if t <= 1:
        return (a + 2) * t ** 3 - (a + 3) * t ** 2 + 1
    return a * t ** 3 - 5 * a * t ** 2 + 8 * a * t - 4 * a if t < 2 else 0.0


def resized(axes, sizes):
    def expect(inputs, attrs):
        value = inputs["X"]
        for axis, new in zip(axes, sizes):
            given, made = np.moveaxis(value, axis, 0), []
            old = len(given)
            for i in range(new):
                place = i * (old - 1) / max(new - 1, 1) if attrs["align_corners"] else (i + 0.5) * old / new - 0.5
                near = range(math.floor(place) - 1, math.floor(place) + 3)
                made.append(sum(given[min(max(one, 0), old - 1)] * weight(place - one) for one in near))
            value = np.moveaxis(np.stack(made), 0, axis)
        return {"Out": value}
    return expect


def case(shape, axes, sizes, aligned, **more):
    attrs = {"align_corners": aligned, "out_h": sizes[0], "out_w": sizes[1], **more}
    return Case("bicubic_interp", {"X": rng.normal(size=shape)}, attrs, resized(axes, sizes), grads="X",
                note=f"{shape}{sizes}{aligned}")


CASES = [case((1, 2, 3, 4), (2, 3), (5, 7), aligned) for aligned in (True, False)]
CASES += [case((1, 1, 6, 5), (2, 3), (2, 3), False), case((1, 3, 4, 2), (1, 2), (5, 5), True, data_layout="NHWC"),
          case((1, 1, 2, 2), (2, 3), (1, 2), True)]

test_forward, test_gradient, test_device = checks(CASES)
