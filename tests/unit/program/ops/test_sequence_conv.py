"""Ops of program/ops/sequence_conv.py."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, ProgramError
from tests.unit.program.ops.checking import Built, Case, check_gradient, checks

rng = np.random.default_rng(0)


def convolved(inputs, attrs):
    """Row by row: neighbours side by side, zeros outside of the sequence, times the filter."""
    x, (lengths,) = inputs["X"]
    length, start = attrs["contextLength"], attrs.get("contextStart", 0)
    out, begin = [], 0
    for size in lengths:
        for i in range(size):
            window = [x[begin + i + start + k] if 0 <= i + start + k < size else np.zeros(x.shape[1])
                      for k in range(length)]
            out.append(np.concatenate(window) @ inputs["Filter"])
        begin += size
    return {"Out": np.array(out)}


def case(lengths, length, start, wide=2, filters=3):
    return Case("sequence_conv", {"X": (rng.normal(size=(sum(lengths), wide)), [lengths]),
                                  "Filter": rng.normal(size=(length * wide, filters))},
                {"contextLength": length, "contextStart": start}, convolved, grads="X Filter",
                note=f"{lengths}x{length}from{start}", lods={"Out": [lengths]})


CASES = [case(lengths, length, start) for lengths in ([3, 1, 4], [0, 2, 0, 3], [1])
         for length, start in ((3, -1), (1, 0), (2, 0), (4, -3), (2, 1))]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("grads", ["X", "Filter"])
def test_one_gradient_alone_is_right_too(grads):
    alone = case([3, 2], 3, -1)
    alone.grads = [grads]
    check_gradient(alone)


def test_a_filter_of_the_wrong_height_is_refused():
    wrong = case([3], 3, -1)
    wrong.attrs["contextLength"], wrong.outputs = 2, {"Out": [None]}
    with pytest.raises(ProgramError, match=r"2 rows of context x 2 columns of X = 4 rows, got \[6, 3\]"):
        Built(wrong)


@pytest.mark.parametrize("attrs, kind", [({"contextStride": 2}, ProgramError), ({"paddingTrainable": True}, NotBuilt)])
def test_what_is_not_built_is_refused(attrs, kind):
    wrong = case([3], 3, -1)
    wrong.attrs.update(attrs)
    with pytest.raises(kind, match=next(iter(attrs))):
        Built(wrong)
