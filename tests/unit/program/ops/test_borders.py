"""Ops of program/ops/borders.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(inputs, attrs):
    left, right, top, bottom, front, back = attrs["paddings"]
    sides = [(front, back), (top, bottom), (left, right)]
    pairs = [(0, 0), *sides, (0, 0)] if attrs.get("data_format") == "NDHWC" else [(0, 0), (0, 0), *sides]
    more = {"constant_values": attrs.get("value", 0)} if attrs["mode"] == "constant" else {}
    return {"Out": np.pad(inputs["X"], pairs, MODES[attrs["mode"]], **more)}


def case(mode, paddings, shape=(1, 2, 3, 2, 3), **more):
    return Case("pad3d", {"X": rng.normal(size=shape)}, {"paddings": paddings, "mode": mode, **more}, padded, grads="X",
                note=f"{mode}{paddings}{more}")


CASES = [case(mode, paddings) for mode in MODES for paddings in ([1, 2, 1, 0, 0, 2], [0] * 6)]
CASES += [case(mode, [1, 1, 0, 1, 1, 0], (2, 3, 2, 2, 1), data_format="NDHWC") for mode in MODES]
CASES += [case("constant", [1, 0, 0, 1, 1, 0], value=2.5), case("replicate", [5, 0, 0, 0, 0, 4])]

CASES += [Case("pad3d", {"X": one.inputs["X"], "Paddings": np.array(one.attrs["paddings"], "int32")},
               {"mode": one.attrs["mode"]}, {"Out": padded(one.inputs, one.attrs)["Out"]}, grads="X",
               note=f"{one.attrs['mode']} by a variable") for one in CASES[:8:2]]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("attrs, words", [({"mode": "mirror"}, "'mirror'"),
                                          ({"mode": "reflect", "paddings": [2, 0, 0, 0, 0, 0]}, "at most 1"),
                                          ({"paddings": [1, 1]}, "expected 6 paddings, got")])
def test_borders_that_cannot_be_are_refused(attrs, words):
    value = static_data("value", [-1, 1, 2, 2, 2])
    with pytest.raises(ProgramError, match=words):
        value.block.append_op("pad3d", {"X": [value]}, {"Out": ["out"]}, attrs)
