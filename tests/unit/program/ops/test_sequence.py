"""Ops of program/ops/sequence.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)
LENGTHS = [[3, 1, 4], [0, 2, 0, 3], [1], [0, 0]]


def pieces(value):
    """The rows of each innermost sequence."""
    array, lengths = value
    return np.split(array, np.cumsum(lengths[-1])[:-1])


def ragged(lengths, *rest, outer=()):
    return rng.normal(size=(sum(lengths), *rest)), [*outer, lengths]


POOLS = {
    "SUM": lambda rows: rows.sum(0),
    "AVERAGE": lambda rows: rows.sum(0) / len(rows),
    "SQRT": lambda rows: rows.sum(0) / len(rows) ** 0.5,
    "MAX": lambda rows: rows.max(0),
    "FIRST": lambda rows: rows[0],
    "LAST": lambda rows: rows[-1],
}


def pooled(inputs, attrs):
    """Sequence by sequence; empty ones give the pad value."""
    parts = pieces(inputs["X"])
    empty = np.full(inputs["X"][0].shape[1:], attrs.get("pad_value", 0.0))
    found = {"Out": np.array([POOLS[attrs["pooltype"]](rows) if len(rows) else empty for rows in parts])}
    starts = np.cumsum([0] + [len(rows) for rows in parts])
    if attrs["pooltype"] == "MAX":
        found["MaxIndex"] = np.array([start + rows.argmax(0) if len(rows) else np.full(empty.shape, -1)
                                      for start, rows in zip(starts, parts)])
    else:
        found["MaxIndex"] = np.zeros(0)
    return found


CASES = [Case("sequence_pool", {"X": ragged(lengths, *rest)}, {"pooltype": kind, "pad_value": pad}, pooled, grads="X",
              note=f"{kind}{lengths}{rest}", lods={"Out": []})
         for kind in POOLS for lengths in LENGTHS for rest, pad in (((2,), 0.0), ((2, 2), 0.25))]
CASES += [Case("sequence_pool", {"X": ragged([2, 0, 3, 1], 2, outer=([3, 1],))}, {"pooltype": kind}, pooled, grads="X",
               note=f"{kind}-two-levels", lods={"Out": [[3, 1]]}) for kind in POOLS]
CASES += [Case("sequence_pool", {"X": (np.arange(2 ** 60, 2 ** 60 + 5).reshape(5, 1), [[2, 0, 3]])},
               {"pooltype": kind, "pad_value": 0.0}, note=f"{kind}-of-ids",
               expect={"Out": 2 ** 60 * np.array([[1], [0], [1]]) + np.array(places)})
          for kind, places in (("FIRST", [[0], [0], [2]]), ("LAST", [[1], [0], [4]]))]


def soft(inputs, attrs):
    parts = [np.exp(rows) / np.exp(rows).sum() for rows in pieces(inputs["X"])]
    return {"Out": np.concatenate(parts)}


CASES += [Case("sequence_softmax", {"X": ragged(lengths, *rest)}, {}, soft, grads="X", note=f"{lengths}{rest}",
               lods={"Out": [lengths]}) for lengths in LENGTHS[:3] for rest in ((), (1,))]

test_forward, test_gradient, test_device = checks(CASES)


def test_without_max_index_the_largest_is_still_found():
    check_forward(Case("sequence_pool", {"X": ragged([2, 3], 2)}, {"pooltype": "MAX"},
                       lambda i, a: {"Out": pooled(i, a)["Out"]}))


def test_an_input_without_lod_is_refused_with_the_remedy():
    case = Case("sequence_pool", {"X": np.ones((3, 2))}, {"pooltype": "SUM"}, {"Out": np.ones((1, 2))})
    with pytest.raises(ProgramError, match="no LoD.*lod_level=1"):
        check_forward(case)


def test_an_unknown_pool_names_the_known_ones():
    with pytest.raises(ProgramError, match="AVERAGE, FIRST, LAST, MAX, SQRT, SUM, got 'MEDIAN'"):
        Built(Case("sequence_pool", {"X": ragged([2], 1)}, {"pooltype": "median"}, {"Out": np.ones((1, 1))}))


def test_the_mean_of_ids_is_refused():
    with pytest.raises(ProgramError, match="expected floats, got int64"):
        Built(Case("sequence_pool", {"X": (np.ones((2, 1), np.int64), [[2]])}, {}, {"Out": np.ones((1, 1))}))


def test_softmax_of_wide_rows_is_refused():
    with pytest.raises(ProgramError, match="one number per row"):
        Built(Case("sequence_softmax", {"X": ragged([2], 3)}, {}, {"Out": np.ones((2, 3))}))
