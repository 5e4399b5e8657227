"""Ops of program/ops/batch_parts.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)


def matrices(count):
    return {"X": [rng.normal(size=(3, 5)) for _ in range(count)]}


def parts(inputs, attrs):
    start, length = attrs.get("start_index", 0), attrs.get("length", -1)
    start %= 5
    return [one[:, start:None if length < 0 else start + length] for one in inputs["X"]]


CASES = []
for attrs in ({}, {"start_index": 1, "length": 2}, {"start_index": -2}):
    CASES += [Case("partial_concat", matrices(3), attrs, lambda inputs, attrs: {"Out": np.concatenate(
        parts(inputs, attrs), 1)}, grads="X", note=str(attrs)),
        Case("partial_sum", matrices(2), attrs, lambda inputs, attrs: {"Out": sum(parts(inputs, attrs))}, grads="X",
             note=str(attrs))]
# Of equal rows every order is the same.
CASES.append(Case("shuffle_batch", {"X": np.ones((4, 3))}, {"seed": 4}, {"Out": np.ones((4, 3))}, grads="X",
                  outputs={"Out": [None], "ShuffleIdx": [None]}))
test_forward, test_gradient, test_device = checks(CASES)


def test_every_row_comes_once_and_gradients_find_back():
    x = np.arange(60.0).reshape(2, 10, 3)
    case = Case("shuffle_batch", {"X": x}, {"seed": 4}, {"Out": x, "ShuffleIdx": np.arange(20)}, grads="X")
    built = Built(case, with_grad=True)
    out, order, back = built.run(["Out_out_0", "ShuffleIdx_out_0", *built.gradients])
    assert sorted(order.tolist()) == list(range(20)) and order.tolist() != list(range(20))
    np.testing.assert_array_equal(out.reshape(20, 3), x.reshape(20, 3)[order])
    np.testing.assert_array_equal(back.reshape(20, 3)[order], built.weights["Out_out_0"].reshape(20, 3))


@pytest.mark.parametrize("given, attrs, text", [
    ([np.ones((2, 3)), np.ones((2, 4))], {}, "matrices of one shape"),
    ([np.ones((2, 3))], {"start_index": 2, "length": 2}, "do not lie within the 3 columns")])
def test_columns_that_are_not_there_are_refused(given, attrs, text):
    with pytest.raises(ProgramError, match=text):
        check_forward(Case("partial_sum", {"X": given}, attrs, {"Out": 0}))
