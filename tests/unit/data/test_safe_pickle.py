"""The restricted unpickler: arrays pass, calls do not."""

import io
import os
import pickle

import numpy as np
import pytest

from fleet_mpi.data import safe_pickle
from fleet_mpi.errors import UsageError


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_arrays_and_plain_values_survive(protocol):
    value = {b"data": np.arange(6, dtype=np.uint8).reshape(2, 3), "labels": [1, 2], "x": (1.5, None, np.float64(2.5))}
    loaded = safe_pickle.load(io.BytesIO(pickle.dumps(value, protocol)))
    assert (loaded.pop(b"data") == value.pop(b"data")).all()
    assert loaded == value


def test_text_of_python_2_is_read_as_bytes_when_asked():
    # What Python 2 wrote for {'data': 'ab'}: STRING opcodes and a module path of old numpy are in real files.
    written = b"(dp0\nS'data'\np1\nS'ab'\np2\ns."
    assert safe_pickle.load(io.BytesIO(written), encoding="bytes") == {b"data": b"ab"}


def test_the_old_place_of_numpys_functions_is_known():
    written = pickle.dumps(np.arange(3), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert b"numpy.core.multiarray" in written
    assert safe_pickle.load(io.BytesIO(written)).tolist() == [0, 1, 2]


def test_a_pickle_that_calls_something_is_refused():
    with pytest.raises(UsageError, match="system"):
        safe_pickle.load(io.BytesIO(pickle.dumps([Evil()])))
