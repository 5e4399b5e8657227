"""fleet_mpi/program/engine/fetched.py."""

import pickle

import numpy as np

from fleet_mpi.program.engine.fetched import Fetched, fetched

LOSS = fetched(np.array([2.5], "float32"))


def test_one_element_is_shown_like_any_array():
    assert repr([LOSS]) == "[array([2.5], dtype=float32)]" and f"{LOSS}" == str(LOSS) == "[2.5]"


def test_arithmetic_keeps_what_converts_and_reductions_give_scalars():
    assert "%.1f" % (LOSS * 2 - 1) == "4.0" and isinstance(LOSS + 1, Fetched)
    assert type(LOSS.mean()) is np.float32 and type(np.sum(LOSS)) is np.float32
    assert round(LOSS.max(), 1) == 2.5


def test_who_unpickles_it_gets_a_plain_array():
    assert b"fleet_mpi" not in pickle.dumps(LOSS)
    again = pickle.loads(pickle.dumps(LOSS))
    assert type(again) is np.ndarray and again == LOSS and again.dtype == np.float32


def test_rows_of_one_element_convert_too():
    prices = fetched(np.array([[2.5], [3.5]], "float32"))
    assert ["%.1f" % row for row in prices] == ["2.5", "3.5"]
    assert type(fetched(np.zeros((2, 3), "float32"))) is np.ndarray
