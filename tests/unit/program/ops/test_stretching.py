"""Ops of program/ops/stretching.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def repeated(value, full):
    """Each element of the result is the one whose position it has, counted around."""
    shape = (1,) * (len(full) - value.ndim) + value.shape
    value, out = value.reshape(shape), np.empty(full)
    for index in np.ndindex(*full):
        out[index] = value[tuple(i % n for i, n in zip(index, shape))]
    return {"Out": out}


def repeating(type, given, attrs, full, **more):
    value = x(*given)
    return Case(type, {"X": value, **more}, attrs, repeated(value, full), grads="X", note=f"{given}{full}")


CASES = [
    repeating("expand", (2, 3), {"expand_times": [2, 1]}, (4, 3)),
    repeating("expand", (1, 3), {"expand_times": [4, 2]}, (4, 6)),
    repeating("expand", (2, 1, 2), {"expand_times": [1, 3, 2]}, (2, 3, 4)),
    repeating("tile", (2, 3), {"repeat_times": [2]}, (2, 6)),
    repeating("tile", (3,), {"repeat_times": [2, 2]}, (2, 6)),
    repeating("expand_v2", (1, 3), {"shape": [4, -1]}, (4, 3)),
    repeating("expand_v2", (3, 1), {"shape": [2, 3, 4]}, (2, 3, 4)),
    repeating("expand_as", (2, 3), {}, (4, 3), target_tensor=x(4, 3)),
    repeating("expand_as_v2", (2, 1), {}, (2, 5), Y=x(2, 5)),
    repeating("expand_as_v2", (1,), {"target_shape": [2, 3]}, (2, 3)),
    Case("expand", {"X": np.ones((2, 1)), "ExpandTimes": np.array([1, 3], "int32")}, {}, {"Out": np.ones((2, 3))},
         note="by a variable"),
]


def padded(value, pairs, pick):
    out = np.empty([n + before + after for n, (before, after) in zip(value.shape, pairs)])
    for index in np.ndindex(out.shape):
        out[index] = pick(value, [i - before for i, (before, _) in zip(index, pairs)])
    return {"Out": out}


def constant(fill):
    return lambda value, place: value[tuple(place)] if all(
        0 <= i < n for i, n in zip(place, value.shape)) else fill


def edge(value, place):
    return value[tuple(sorted((0, i, n - 1))[1] for i, n in zip(place, value.shape))]


def reflect(value, place):
    return value[tuple(-i if i < 0 else 2 * n - 2 - i if i >= n else i for i, n in zip(place, value.shape))]


for given, paddings in [((2, 3), [0, 1, 2, 0]), ((3,), [1, 1]), ((2, 1, 2), [0, 0, 1, 2, 3, 0])]:
    value = x(*given)
    CASES.append(Case("pad", {"X": value}, {"paddings": paddings, "pad_value": 1.5},
                      padded(value, list(zip(paddings[::2], paddings[1::2])), constant(1.5)), grads="X",
                      note=f"{given}{paddings}"))
for mode, pick in (("constant", constant(0.5)), ("edge", edge), ("reflect", reflect)):
    for layout in ("NCHW", "NHWC"):
        value, (top, bottom, left, right) = x(1, 3, 4, 3), (1, 2, 0, 1)
        sides = [(top, bottom), (left, right)]
        pairs = [(0, 0), (0, 0), *sides] if layout == "NCHW" else [(0, 0), *sides, (0, 0)]
        CASES.append(Case("pad2d", {"X": value}, {"paddings": [top, bottom, left, right], "mode": mode,
                                                  "pad_value": 0.5, "data_format": layout},
                          padded(value, pairs, pick), grads="X", note=mode + layout))

for mode in ("constant", "reflect"):
    value = x(1, 1, 3, 3)
    CASES.append(Case("pad2d", {"X": value, "Paddings": np.array([1, 0, 2, 1], "int32")}, {"mode": mode},
                      {"Out": np.pad(value, ((0, 0), (0, 0), (1, 0), (2, 1)), mode)}, grads="X",
                      note=f"{mode} by a variable"))

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("type, attrs", [("expand", {"expand_times": [2]}), ("expand_v2", {"shape": [4, 3]}),
                                         ("expand_v2", {"shape": [3]}), ("pad", {"paddings": [1, 1]})])
def test_sizes_that_do_not_fit_are_refused_while_building(type, attrs):
    value = static_data("value", [2, 3])
    with pytest.raises(ProgramError, match=r"\[2, 3\]"):
        value.block.append_op(type, {"X": [value]}, {"Out": ["out"]}, attrs)
