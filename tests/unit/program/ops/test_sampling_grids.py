"""Ops of program/ops/sampling_grids.py."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def grid_of(inputs, attrs):
    shape = attrs.get("output_shape") or list(inputs["OutputShape"])
    (n, _, height, width), aligned = shape, attrs.get("align_corners", True)
    out = np.empty((n, height, width, 2))
    for i, row, column in np.ndindex(n, height, width):
        place = [2 * at / (size - 1) - 1 if aligned else (2 * at + 1) / size - 1
                 for at, size in ((column, width), (row, height))]
        out[i, row, column] = inputs["Theta"][i] @ [*place, 1]
    return {"Output": out}


def brought_in(place, size, attrs):
    """Folded back at the borders, or held at them."""
    low, high = (0, size - 1) if attrs["align_corners"] else (-0.5, size - 0.5)
    if attrs["padding_mode"] == "reflection":
        while not low <= place <= high:
            place = 2 * low - place if place < low else 2 * high - place
    return place if attrs["padding_mode"] == "zeros" else min(max(place, 0), size - 1)


def sampled(inputs, attrs):
    given, grid = inputs["X"], inputs["Grid"]
    n, c, h, w = given.shape
    out = np.zeros((n, c) + grid.shape[1:3])
    for i, row, column in np.ndindex(grid.shape[:3]):
        places = []
        for number, size in zip(grid[i, row, column], (w, h)):
            place = (number + 1) / 2 * (size - 1) if attrs["align_corners"] else ((number + 1) * size - 1) / 2
            places.append(brought_in(place, size, attrs))
        px, py = places
        if attrs["mode"] == "nearest":
            near = [(round(py), round(px), 1.0)]
        else:
            near = [(math.floor(py) + a, math.floor(px) + b, abs(1 - a - py + math.floor(py)) * abs(
                1 - b - px + math.floor(px))) for a in (0, 1) for b in (0, 1)]
        for y, at, weight in near:
            if 0 <= y < h and 0 <= at < w:
                out[i, :, row, column] += weight * given[i, :, y, at]
    return {"Output": out}


def sampler(mode="bilinear", padding="zeros", aligned=True):
    inputs = {"X": x(2, 2, 3, 4), "Grid": rng.uniform(-1.6, 1.6, (2, 3, 2, 2))}
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    return Case("grid_sampler", inputs, attrs, sampled, grads="X Grid", by="Output", note=f"{mode}{padding}{aligned}")


def source(i, old, new, type, attrs):
    """(old place, share of the next) of one new place, by the original's formulas."""
    aligned = attrs["align_corners"]
    ratio = ((old - 1) / (new - 1) if new > 1 else 0) if aligned else old / new
    if type == "nearest_interp":
        return int(ratio * i + 0.5) if aligned else int(ratio * i), 0.0
    place = max(ratio * (i + 0.5) - 0.5, 0) if not aligned and attrs["align_mode"] == 0 else ratio * i
    return int(place), place - int(place)


def resized(type, axes, sizes):
    def expect(inputs, attrs):
        value = inputs["X"]
        for axis, new in zip(axes, sizes):
            given, old = np.moveaxis(value, axis, 0), value.shape[axis]
            made = []
            for i in range(new):
                at, share = source(i, old, new, type, attrs)
                made.append(given[at] * (1 - share) + given[min(at + 1, old - 1)] * share)
            value = np.moveaxis(np.stack(made), 0, axis)
        return {"Out": value}
    return expect


def resizing(type, shape, axes, sizes, aligned=True, mode=1, **more):
    names = ("out_d", "out_h", "out_w")[-len(sizes):]
    attrs = {"align_corners": aligned, "align_mode": mode, **dict(zip(names, sizes)), **more}
    return Case(type, {"X": x(*shape)}, attrs, resized(type, axes, sizes), grads="X",
                note=f"{shape}to{sizes}{aligned}{mode}")


def scaled(type, **inputs):
    case = resizing(type, (1, 2, 2, 3), (2, 3), (4, 6))
    case.inputs |= inputs
    case.attrs = {"align_corners": True, "align_mode": 1, **({} if inputs else {"scale": 2.0})}
    case.note = "scale" + ",".join(inputs)
    return case


CASES = [
    Case("affine_grid", {"Theta": x(2, 2, 3)}, {"output_shape": [2, 3, 3, 4]}, grid_of, grads="Theta", by="Output"),
    Case("affine_grid", {"Theta": x(1, 2, 3)}, {"output_shape": [1, 1, 2, 3], "align_corners": False}, grid_of,
         grads="Theta", by="Output", note="edges"),
    Case("affine_grid", {"Theta": x(1, 2, 3), "OutputShape": np.array([1, 1, 2, 2], "int32")}, {}, grid_of,
         note="by a variable"),
    sampler(), sampler(aligned=False), sampler(padding="border"), sampler(padding="border", aligned=False),
    sampler(padding="reflection"), sampler(padding="reflection", aligned=False), sampler("nearest"),
    sampler("nearest", "border"),
    resizing("bilinear_interp", (2, 2, 3, 4), (2, 3), (5, 6)),
    resizing("bilinear_interp", (1, 1, 5, 4), (2, 3), (3, 2), aligned=False),
    resizing("bilinear_interp", (1, 1, 3, 4), (2, 3), (7, 4), aligned=False, mode=0),
    resizing("bilinear_interp", (1, 2, 3, 2), (1, 2), (4, 1), data_layout="NHWC"),
    resizing("nearest_interp", (1, 2, 3, 3), (2, 3), (5, 4)),
    resizing("nearest_interp", (1, 2, 3, 3), (2, 3), (6, 2), aligned=False),
    resizing("trilinear_interp", (1, 1, 2, 3, 2), (2, 3, 4), (3, 2, 4)),
    resizing("linear_interp", (2, 1, 3), (2,), (5,)),
    scaled("bilinear_interp"), scaled("nearest_interp", OutSize=np.array([4, 6], "int32")),
    scaled("bilinear_interp", SizeTensor=[np.array([4], "int32"), np.array([6], "int32")]),
    scaled("bilinear_interp", Scale=np.array([2.0])),
]

test_forward, test_gradient, test_device = checks(CASES)


def test_a_grid_of_another_form_is_refused_while_building():
    images, grid = static_data("images", [2, 1, 3, 3]), static_data("grid", [2, 3, 3, 3])
    with pytest.raises(ProgramError, match=r"expected X \[N, C, H, W\] and Grid"):
        images.block.append_op("grid_sampler", {"X": [images], "Grid": [grid]}, {"Output": ["out"]})
