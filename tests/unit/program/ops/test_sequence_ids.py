"""Ops of program/ops/sequence_ids.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Case, check_forward, checks

rng = np.random.default_rng(0)


def ids_of(*lengths, shape=(-1, 1), highest=6):
    return rng.integers(0, highest, sum(lengths[-1])).reshape(shape), list(lengths)


def pieces(value):
    return np.split(value[0].reshape(-1), np.cumsum(value[1][-1])[:-1])


def enumerated(inputs, attrs):
    size, pad = attrs["win_size"], attrs.get("pad_value", 0)
    return {"Out": np.array([(piece[i:].tolist() + [pad] * size)[:size]
                             for piece in pieces(inputs["X"]) for i in range(len(piece))])}


def erased(inputs, attrs):
    kept = [one for piece in pieces(inputs["X"]) for one in piece if one not in attrs["tokens"]]
    return {"Out": np.array(kept, np.int64).reshape(-1, 1)}


def scattered(inputs, attrs):
    out = inputs["X"].copy()
    for row, some_ids, updates in zip(out, pieces(inputs["Ids"]), pieces(inputs["Updates"])):
        for place, update in zip(some_ids, updates):
            row[place] += update
    return {"Out": out}


CASES = [Case("sequence_enumerate", {"X": ids_of(lengths, shape=shape)}, {"win_size": size, "pad_value": pad},
              enumerated, lods={"Out": [lengths]}, note=f"{lengths}{size}")
         for lengths in ([3, 1, 4], [0, 2]) for size, pad, shape in ((2, 0, (-1, 1)), (3, 9, (-1,)), (1, 0, (-1, 1)))]
CASES += [Case("sequence_erase", {"X": (np.array([[2], [2], [6], [1], [3], [9], [6], [1], [0], [1]]), [[3, 6, 1]])},
               {"tokens": tokens}, erased, lods={"Out": [left]}, note=str(tokens))
          for tokens, left in (([2, 3, 5], [1, 5, 1]), ([], [3, 6, 1]), ([1], [3, 4, 0]))]
CASES += [Case("sequence_scatter", {"X": rng.normal(size=(len(lengths), 6)), "Ids": ids_of(lengths),
                                    "Updates": (rng.normal(size=(sum(lengths), 1)), [lengths])}, {}, scattered,
               grads="X Updates", note=str(lengths)) for lengths in ([3, 0, 7], [1])]

test_forward, test_gradient, test_device = checks(CASES)


def test_updates_must_be_as_ragged_as_their_ids():
    case = Case("sequence_scatter", {"X": np.ones((2, 6)), "Ids": ids_of([1, 2]),
                                     "Updates": (np.ones((3, 1)), [[2, 1]])}, {}, {"Out": np.ones((2, 6))})
    with pytest.raises(ProgramError, match="same LoD"):
        check_forward(case)


def test_every_row_needs_its_sequence_of_ids():
    case = Case("sequence_scatter", {"X": np.ones((2, 6)), "Ids": ids_of([1, 1, 1]),
                                     "Updates": (np.ones((3, 1)), [[1, 1, 1]])}, {}, {"Out": np.ones((2, 6))})
    with pytest.raises(ProgramError, match="X's 2 rows, got 3"):
        check_forward(case)
