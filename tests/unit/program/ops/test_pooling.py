"""Ops of program/ops/pooling.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def windows(attrs, sizes):
    """(start, end, count) of every window along every dimension; borders cut off."""
    rank = len(sizes)
    if attrs.get("global_pooling"):
        return [[(0, n, n)] for n in sizes]
    if attrs.get("adaptive"):
        return [[(i * n // k, -(-(i + 1) * n // k), -(-(i + 1) * n // k) - i * n // k) for i in range(k)]
                for n, k in zip(sizes, attrs["ksize"])]
    made = []
    pads = attrs.get("paddings", [0] * rank)
    pads = [(p, p) for p in pads] if len(pads) == rank else list(zip(pads[::2], pads[1::2]))
    if attrs.get("padding_algorithm") == "SAME":
        totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, attrs["ksize"], attrs["strides"])]
        pads = [(t // 2, t - t // 2) for t in totals]
    for n, k, s, (before, after) in zip(sizes, attrs["ksize"], attrs.get("strides", [1] * rank), pads):
        room = n - k + before + after
        count = (-(-room // s) if attrs.get("ceil_mode") else room // s) + 1
        line = []
        for i in range(count):
            start, end = max(i * s - before, 0), min(i * s - before + k, n)
            line.append((start, end, end - start if attrs.get("exclusive", True) else k))
        made.append(line)
    return made


def pooled(inputs, attrs):
    last = attrs.get("data_format", "").endswith("C")
    x = np.moveaxis(inputs["X"], -1, 1) if last else inputs["X"]
    lines = windows(attrs, x.shape[2:])
    out = np.zeros(x.shape[:2] + tuple(len(line) for line in lines))
    for at in np.ndindex(*out.shape):
        chosen = [line[i] for line, i in zip(lines, at[2:])]
        cut = x[at[:2] + tuple(slice(start, end) for start, end, _ in chosen)]
        divisor = np.prod([count for _, _, count in chosen])
        out[at] = cut.max() if attrs["pooling_type"] == "max" else cut.sum() / divisor
    return {"Out": np.moveaxis(out, 1, -1) if last else out}


def case(type, shape, **attrs):
    made = Case(type, {"X": rng.permutation(np.prod(shape)).reshape(shape) / 7.0}, attrs, pooled, "X", note=str(attrs))
    made.outputs = {"Out": [0], "Mask": [0]}  # Mask feeds the gradient; its values are ours to choose
    return made


CASES = [case("pool2d", shape, pooling_type=kind, **attrs) for kind in ("max", "avg") for shape, attrs in [
    ((2, 2, 4, 4), dict(ksize=[2, 2], strides=[2, 2])),
    ((1, 2, 5, 4), dict(ksize=[3, 3], strides=[2, 1], paddings=[1, 1])),
    ((1, 1, 5, 5), dict(ksize=[2, 2], strides=[2, 2], ceil_mode=True)),
    ((1, 1, 4, 4), dict(ksize=[3, 2], paddings=[1, 0, 0, 1], exclusive=False)),
    ((2, 3, 3, 2), dict(ksize=[2, 2], global_pooling=True)),
    ((1, 2, 5, 3), dict(ksize=[3, 2], adaptive=True)),
    ((1, 4, 3, 2), dict(ksize=[2, 2], data_format="NHWC")),
    ((1, 1, 5, 4), dict(ksize=[3, 3], strides=[2, 2], padding_algorithm="SAME")),
]]
CASES += [case("pool3d", shape, pooling_type=kind, **attrs) for kind in ("max", "avg") for shape, attrs in [
    ((1, 2, 3, 2, 3), dict(ksize=[2, 2, 2], strides=[1, 1, 2])),
    ((1, 2, 2, 3, 2), dict(ksize=[2, 2, 2], global_pooling=True, data_format="NDHWC")),
    ((1, 1, 3, 3, 2), dict(ksize=[3, 3, 2], paddings=[1, 1, 0])),
]]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("attrs, words", [
    ({"pooling_type": "sum"}, "'max' or 'avg'"),
    ({"ksize": [5, 2]}, "do not fit"),
    ({"ksize": [2, 2, 2]}, "expected 2 numbers"),
])
def test_what_does_not_fit_is_refused_when_the_program_is_built(attrs, words):
    with pytest.raises(ProgramError, match=words):
        Built(Case("pool2d", {"X": np.zeros((1, 1, 4, 4))}, attrs, None, outputs={"Out": [0]}))
