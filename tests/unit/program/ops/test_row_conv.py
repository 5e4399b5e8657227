"""Ops of program/ops/row_conv.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.sequence import row_conv
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def convolved(pieces, filter):
    return [np.array([sum(piece[i + k] * filter[k] for k in range(len(filter)) if i + k < len(piece))
                      for i in range(len(piece))]).reshape(piece.shape) for piece in pieces]


def ragged(inputs, attrs):
    rows, (lengths,) = inputs["X"]
    return {"Out": np.concatenate(convolved(np.split(rows, np.cumsum(lengths)[:-1]), inputs["Filter"]))}


def batched(inputs, attrs):
    return {"Out": np.stack(convolved(inputs["X"], inputs["Filter"]))}


CASES = [
    Case("row_conv", {"X": (x(6, 3), [[2, 0, 4]]), "Filter": x(3, 3)}, {}, ragged, grads="X Filter",
         lods={"Out": [[2, 0, 4]]}),
    Case("row_conv", {"X": (x(3, 2), [[3]]), "Filter": x(1, 2)}, {}, ragged, grads="X Filter", note="itself only"),
    Case("row_conv", {"X": x(2, 4, 3), "Filter": x(3, 3)}, {}, batched, grads="X Filter", note="batched"),
    Case("row_conv", {"X": x(2, 2, 3), "Filter": x(4, 3)}, {}, batched, grads="X Filter", note="longer than the steps"),
]

test_forward, test_gradient, test_device = checks(CASES)


def test_the_layer_makes_a_weight_for_each_row_it_sees():
    out = row_conv(static_data("x", [None, 4], lod_level=1), future_context_size=2, act="relu")
    weight, = out.program.all_parameters()
    assert weight.shape == (3, 4) and out.op.type == "relu" and out.lod_level == 1


def test_what_is_no_sequence_is_refused():
    value = static_data("value", [-1, 3])
    with pytest.raises(ProgramError, match=r"a Filter \[context, width\]"):
        value.block.append_op("row_conv", {"X": [value], "Filter": [static_data("w", [2, 4])]}, {"Out": ["out"]})
