"""Ops of program/ops/sequence_rows.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Case, check_forward, checks

rng = np.random.default_rng(0)


def ragged(*lengths, wide=(2,)):
    """An array with these levels of lengths."""
    return rng.normal(size=(sum(lengths[-1]), *wide)), list(lengths)


def pieces(value):
    return np.split(value[0], np.cumsum(value[1][-1])[:-1])


def joined(parts, like):
    return np.concatenate([np.asarray(part).reshape(-1, *like.shape[1:]) for part in parts])


def expanded(inputs, attrs):
    x, y = inputs["X"], inputs["Y"]
    parts = pieces(x) if isinstance(x, tuple) else [row[None] for row in x]
    counts = y[1][attrs.get("ref_level", -1)]
    return {"Out": joined([part for part, count in zip(parts, counts) for _ in range(count)], parts[0])}


CASES = [
    # The three worked examples of the original's documentation, in lengths.
    Case("sequence_expand", {"X": ragged([2, 2], wide=(1,)), "Y": ragged([2, 2], [3, 3, 1, 1])}, {"ref_level": 0},
         expanded, grads="X", lods={"Out": [[2, 2, 2, 2]]}, note="equal"),
    Case("sequence_expand", {"X": ragged([1, 3], wide=(1,)), "Y": ragged([2, 2], [3, 3, 0, 2])}, {"ref_level": 0},
         expanded, grads="X", lods={"Out": [[1, 1, 3, 3]]}, note="unequal"),
    Case("sequence_expand", {"X": rng.normal(size=(3, 2)), "Y": ragged([2, 1, 3])}, {}, expanded, grads="X",
         lods={"Out": []}, note="rows"),
    Case("sequence_expand", {"X": rng.normal(size=(4, 2, 2)), "Y": ragged([2, 2], [0, 2, 0, 1])}, {}, expanded,
         grads="X", lods={"Out": []}, note="rows-some-not-at-all"),
    Case("sequence_expand", {"X": ragged([2, 0, 1]), "Y": ragged([2, 3, 0])}, {}, expanded, grads="X",
         lods={"Out": [[2, 2, 0, 0, 0]]}, note="empty"),
    Case("sequence_expand", {"X": np.arange(3)[:, None] + 2 ** 60, "Y": ragged([2, 1, 3])}, {}, expanded, note="ids"),
]
CASES += [Case("sequence_expand_as", {"X": rng.normal(size=(3, *wide)), "Y": ragged([3, 0, 2])}, {}, expanded,
               grads="X", lods={"Out": [[3, 0, 2]]}, note=str(wide)) for wide in ((2,), (2, 2))]


def concatenated(inputs, attrs):
    parts = zip(*(pieces(x) for x in inputs["X"]))
    return {"Out": np.concatenate([piece for group in parts for piece in group])}


CASES += [Case("sequence_concat", {"X": [ragged(lengths) for lengths in inputs]}, {}, concatenated, grads="X",
               lods={"Out": [np.sum(inputs, 0).tolist()]}, note=str(inputs))
          for inputs in ([[2, 1], [1, 3]], [[0, 2, 1], [0, 0, 3], [1, 1, 1]], [[3]])]
CASES += [Case("sequence_concat", {"X": [ragged([2, 1], [2, 1, 0]), ragged([2, 1], [1, 0, 2])]}, {}, concatenated,
               grads="X", lods={"Out": [[2, 1], [3, 1, 2]]}, note="two-levels")]
CASES += [Case("sequence_reverse", {"X": ragged(*lengths, wide=wide)}, {}, grads="X", by="Y", lods={"Y": list(lengths)},
               expect=lambda i, a: {"Y": np.concatenate([piece[::-1] for piece in pieces(i["X"])])},
               note=f"{lengths}{wide}")
          for lengths in ([[3, 1, 4]], [[0, 2, 0]], [[1, 2], [2, 0, 1]]) for wide in ((2,), (1, 3))]


def cut(inputs, attrs):
    places = zip(pieces(inputs["X"]), inputs["Offset"].reshape(-1), inputs["Length"].reshape(-1))
    return {"Out": np.concatenate([piece[offset:offset + length] for piece, offset, length in places])}


CASES += [Case("sequence_slice", {"X": ragged([3, 2, 4]), "Offset": np.array([[0], [1], [2]]).reshape(shape),
                                  "Length": np.array([[2], [0], [2]]).reshape(shape)}, {}, cut, grads="X",
               lods={"Out": [[2, 0, 2]]}, note=str(shape)) for shape in ((3, 1), (3,))]

test_forward, test_gradient, test_device = checks(CASES)


def test_a_state_of_several_levels_is_expanded_row_by_row():
    state = ragged([1, 1], [2, 1])
    case = Case("sequence_expand", {"X": state, "Y": ragged([2, 1], [1, 0, 2])}, {},
                {"Out": state[0][[0, 2, 2]]}, lods={"Out": []})
    check_forward(case)


def test_x_that_fits_neither_by_rows_nor_by_sequences_is_refused():
    case = Case("sequence_expand", {"X": ragged([2, 2]), "Y": ragged([1, 1, 1])}, {}, {"Out": np.ones((1, 1))})
    with pytest.raises(ProgramError, match="3 sequences.*X has 4 rows, 2 sequences"):
        check_forward(case)


@pytest.mark.parametrize("y, level", [(np.ones((2, 1)), -1), (ragged([2, 2]), 1)])
def test_a_level_that_y_does_not_have_is_refused(y, level):
    case = Case("sequence_expand", {"X": ragged([2, 2]), "Y": y}, {"ref_level": level}, {"Out": np.ones((1, 1))})
    with pytest.raises(ProgramError, match=f"ref_level {level}: Y has [01] LoD"):
        check_forward(case)


def test_inputs_of_unequal_numbers_of_sequences_are_not_joined():
    case = Case("sequence_concat", {"X": [ragged([2, 2]), ragged([1])]}, {}, {"Out": np.ones((1, 1))})
    with pytest.raises(ProgramError, match=r"\[2, 1\] sequences"):
        check_forward(case)


@pytest.mark.parametrize("offset, length", [(2, 2), (-1, 1), (0, -1)])
def test_a_slice_outside_of_its_sequence_is_named(offset, length):
    case = Case("sequence_slice", {"X": ragged([9, 3]), "Offset": np.array([0, offset]),
                                   "Length": np.array([1, length])}, {}, {"Out": np.ones((1, 1))})
    with pytest.raises(ProgramError, match=f"sequence 1 of 3 rows cannot give {length} rows from {offset}"):
        check_forward(case)


def test_expand_as_needs_a_row_for_each_sequence():
    case = Case("sequence_expand_as", {"X": np.ones((3, 1)), "Y": ragged([1, 1])}, {}, {"Out": np.ones((1, 1))})
    with pytest.raises(ProgramError, match="2 sequences, got 3 rows"):
        check_forward(case)
