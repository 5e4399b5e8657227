"""Ops of program/ops/convolution.py."""

import itertools

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def pairs_of(attrs, sizes, windows, strides):
    if attrs.get("padding_algorithm") == "SAME":
        totals = [max((-(-n // s) - 1) * s + w - n, 0) for n, w, s in zip(sizes, windows, strides)]
        return [(t // 2, t - t // 2) for t in totals]
    given = attrs.get("paddings", [0] * len(sizes))
    if attrs.get("padding_algorithm") == "VALID":
        return [(0, 0)] * len(sizes)
    return [(p, p) for p in given] if len(given) == len(sizes) else list(zip(given[::2], given[1::2]))


def convolved(x, w, strides, pairs, dilations, groups):
    """Every output number by itself."""
    padded = np.pad(x, [(0, 0), (0, 0)] + list(pairs))
    windows = w.shape[2:]
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], windows, strides, dilations)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    for n, c in itertools.product(range(x.shape[0]), range(w.shape[0])):
        first = c // (w.shape[0] // groups) * w.shape[1]
        for at in np.ndindex(*sizes):
            cut = tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, k, d in zip(at, strides, windows, dilations))
            out[(n, c) + at] = (padded[(n, slice(first, first + w.shape[1])) + cut] * w[c]).sum()
    return out


def settings_of(attrs, x, w):
    rank = w.ndim - 2
    strides = attrs.get("strides", [1] * rank)
    dilations = [1] * rank if attrs.get("padding_algorithm") == "SAME" else attrs.get("dilations", [1] * rank)
    return strides, pairs_of(attrs, x.shape[2:], w.shape[2:], strides), dilations, attrs.get("groups", 1)


def last_to_front(array, attrs):
    return np.moveaxis(array, -1, 1) if attrs.get("data_format", "").endswith("C") else array


def front_to_last(array, attrs):
    return np.moveaxis(array, 1, -1) if attrs.get("data_format", "").endswith("C") else array


def convolutions(inputs, attrs):
    x, w = last_to_front(inputs["Input"], attrs), inputs["Filter"]
    out = convolved(x, w, *settings_of(attrs, x, w))
    if "Bias" in inputs:
        out = out + inputs["Bias"].reshape(-1, *[1] * (w.ndim - 2))
    return {"Output": front_to_last(out, attrs)}


def transposed(inputs, attrs):
    """Every input number spread over the places it reaches."""
    x, w = last_to_front(inputs["Input"], attrs), inputs["Filter"]
    strides, pairs, dilations, groups = settings_of(attrs, x, w)
    full = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(x.shape[2:], strides, dilations, w.shape[2:])]
    wanted = attrs.get("output_size") or [n - sum(p) + more for n, p, more in zip(
        full, pairs, attrs.get("output_padding", [0] * len(full)))]
    room = [max(n, p[0] + size) for n, p, size in zip(full, pairs, wanted)]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *room))
    for n, c in np.ndindex(*x.shape[:2]):
        first = c // (x.shape[1] // groups) * w.shape[1]
        for at in np.ndindex(*x.shape[2:]):
            cut = tuple(slice(a * s, a * s + d * (k - 1) + 1, d)
                        for a, s, k, d in zip(at, strides, w.shape[2:], dilations))
            out[(n, slice(first, first + w.shape[1])) + cut] += x[(n, c) + at] * w[c]
    cut = tuple(slice(p[0], p[0] + size) for p, size in zip(pairs, wanted))
    return {"Output": front_to_last(out[(slice(None),) * 2 + cut], attrs)}


def case(type, x, w, expect=convolutions, bias=False, **attrs):
    inputs = {"Input": rng.normal(size=x), "Filter": rng.normal(size=w)}
    if bias:
        inputs["Bias"] = rng.normal(size=bias)
    return Case(type, inputs, attrs, expect, "Input Filter" + (" Bias" if bias else ""), "Output", note=str(attrs))


CASES = [
    case("conv2d", (2, 3, 4, 4), (2, 3, 3, 3)),
    case("conv2d", (1, 2, 5, 4), (2, 2, 3, 2), strides=[2, 1], paddings=[1, 0]),
    case("conv2d", (1, 2, 4, 4), (2, 2, 2, 2), paddings=[0, 1, 2, 0]),
    case("conv2d", (1, 1, 6, 5), (2, 1, 2, 2), dilations=[2, 3]),
    case("conv2d", (1, 4, 3, 3), (4, 2, 2, 2), groups=2, bias=4),
    case("conv2d", (1, 2, 5, 5), (1, 2, 3, 3), strides=[2, 2], padding_algorithm="SAME", dilations=[2, 2]),
    case("conv2d", (1, 2, 4, 4), (1, 2, 3, 3), paddings=[1, 1], padding_algorithm="VALID"),
    case("conv2d", (1, 4, 3, 2), (3, 2, 2, 2), data_format="NHWC", paddings=[1, 1], bias=3),
    case("conv2d", (2, 3, 3, 3), (4, 3, 1, 1)),
    case("depthwise_conv2d", (1, 3, 4, 4), (6, 1, 3, 3), groups=3, paddings=[1, 1]),
    case("conv3d", (1, 2, 3, 3, 2), (2, 2, 2, 2, 2), paddings=[1, 0, 0]),
    case("conv3d", (1, 3, 3, 2, 1), (2, 1, 2, 2, 1), data_format="NDHWC", strides=[1, 2, 1]),
    case("conv2d_transpose", (1, 2, 3, 3), (2, 2, 3, 3), transposed),
    case("conv2d_transpose", (2, 2, 2, 3), (2, 1, 3, 2), transposed, strides=[2, 2], paddings=[1, 0]),
    case("conv2d_transpose", (1, 2, 2, 2), (2, 1, 3, 3), transposed, strides=[2, 2], output_size=[6, 5]),
    case("conv2d_transpose", (1, 4, 2, 2), (4, 2, 2, 2), transposed, groups=2, dilations=[2, 1]),
    case("conv2d_transpose", (1, 2, 2, 3), (2, 1, 3, 2), transposed, strides=[3, 2], paddings=[1, 0],
         output_padding=[2, 1]),
    case("conv2d_transpose", (1, 2, 2, 3), (3, 2, 2, 2), transposed, data_format="NHWC"),
    case("depthwise_conv2d_transpose", (1, 3, 2, 2), (3, 1, 2, 2), transposed, groups=3),
    case("conv3d_transpose", (1, 2, 2, 1, 2), (2, 1, 2, 2, 2), transposed, strides=[1, 1, 2]),
]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("x, w, attrs, words", [
    ((1, 3, 4, 4), (2, 2, 3, 3), {}, "3 channels in 1 group"),
    ((1, 2, 4, 4), (3, 1, 3, 3), {"groups": 2}, "multiple of 2 outputs"),
    ((1, 2, 2, 4), (2, 2, 3, 3), {}, "does not fit"),
    ((1, 2, 4), (2, 2, 3, 3), {}, "4 dimensions"),
    ((1, 2, 4, 4), (2, 2, 3, 3), {"paddings": [1, 1, 1]}, "2 or 4 numbers"),
    ((1, 2, 4, 4), (2, 2, 3, 3), {"data_format": "NWHC"}, "NHWC"),
])
def test_what_does_not_fit_is_refused_when_the_program_is_built(x, w, attrs, words):
    with pytest.raises(ProgramError, match=words):
        Built(Case("conv2d", {"Input": np.zeros(x), "Filter": np.zeros(w)}, attrs, None, outputs={"Output": [0]}))


def test_sizes_that_are_unknown_stay_unknown():
    built = Built(CASES[0])
    block = built.program.global_block()
    block.var("Input_0").shape = (-1, 3, -1, 4)
    block.append_op("conv2d", {"Input": ["Input_0"], "Filter": ["Filter_0"]}, {"Output": ["again"]})
    assert block.var("again").shape == (-1, 2, -1, 2)
