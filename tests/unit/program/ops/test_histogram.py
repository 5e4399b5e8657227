"""Ops of program/ops/histogram.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def counted(inputs, attrs):
    values, bins = inputs["X"].ravel().astype("float64"), attrs["bins"]
    low, high = (attrs["min"], attrs["max"]) if attrs["min"] != attrs["max"] else (values.min(), values.max())
    low, high = (low - 1, high + 1) if low == high else (low, high)
    out = [0] * bins
    for value in values:
        if low <= value <= high:
            out[min(int((value - low) / (high - low) * bins), bins - 1)] += 1
    return {"Out": np.array(out)}


def case(values, bins, low=0, high=0, note=""):
    return Case("histogram", {"X": values}, {"bins": bins, "min": low, "max": high}, counted, note=note)


CASES = [
    case(rng.normal(size=(4, 9)), 5, note="of the data"), case(rng.normal(size=40), 4, -1, 1, note="a part"),
    case(np.array([1, 2, 1]), 4, 0, 3, note="whole numbers"), case(np.full((2, 2), 7.0), 3, note="one value"),
    case(np.array([0.0, 1.0, 2.0]), 2, 0, 2, note="both ends"),
    case(np.array([0.5, np.nan, -2.0]), 2, 0, 1, note="NaN"),
    case(rng.integers(-5, 5, 30), 7, note="integers of the data"),
]

test_forward, test_device = checks(CASES)


def test_a_range_that_ends_before_it_starts_is_refused():
    value = static_data("value", [3])
    with pytest.raises(ProgramError, match="min <= max"):
        value.block.append_op("histogram", {"X": [value]}, {"Out": ["out"]}, {"bins": 3, "min": 2, "max": 1})
