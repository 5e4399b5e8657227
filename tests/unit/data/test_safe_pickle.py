"""The restricted unpickler: arrays pass, calls do not."""

import io
import os
import pickle
import random

import numpy as np
import pytest

from fleet_mpi.data import safe_pickle
from fleet_mpi.errors import CheckpointDamaged, UsageError


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


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("array", [
    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(24, dtype=">i4").reshape(2, 3, 4).transpose(1, 0, 2),
    np.array(["a", "bc"]), np.array([[b"x"], [b"yz"]]), np.zeros((0, 3), "float16"), np.array(True), np.array(1 + 2j),
    np.arange(12, dtype="uint8")[::3]])
def test_arrays_of_every_plain_kind_and_order_survive(protocol, array):
    pair = safe_pickle.load(io.BytesIO(pickle.dumps([array, (array, {"x": array})], protocol)))
    assert pair[0] is pair[1][0] is pair[1][1]["x"] and type(pair[0]) is np.ndarray
    np.testing.assert_array_equal(pair[0], array)
    assert pair[0].dtype == array.dtype and pair[0].flags.writeable


def test_a_list_that_holds_itself_survives():
    value = [np.arange(3)]
    value.append(value)
    loaded = safe_pickle.load(io.BytesIO(pickle.dumps(value)))
    assert loaded[1] is loaded and loaded[0].tolist() == [0, 1, 2]


def calling(name, *arguments, module="numpy", state=None):
    """A pickle that calls a function, whatever it is, and then gives the result a state."""
    written = pickle.PROTO + b"\2" + b"c" + f"{module}\n{name}\n".encode()
    written += pickle.dumps(arguments, 2)[2:-1] + pickle.REDUCE
    if state is not None:
        written += pickle.dumps(state, 2)[2:-1] + pickle.BUILD
    return written + pickle.STOP


# numpy itself would take the eight bytes for a pointer to an object.
FORGED = calling("ndarray", (1,), "O", b"\x41" * 8)


@pytest.mark.parametrize("written", [
    FORGED,
    calling("dtype", "O"), calling("dtype", "V8"), calling("dtype", "M8[D]"), calling("dtype", "f8,O"),
    calling("dtype", "f8", state=(3, "x")), calling("dtype", "f8"),
    calling("_frombuffer", b"\x41" * 8, "O", (1,), "C", module="numpy._core.numeric"),
    calling("scalar", "O", b"\x41" * 8, module="numpy.core.multiarray"),
    calling("_reconstruct", 1, (0,), b"b", module="numpy.core.multiarray", state=(1, (9,), "f8", False, b"")),
    calling("encode", "text", "zip", module="_codecs"),
    calling("encode", "text", "latin1", module="_codecs", state={"a": 1}),
    b"\x80\x02cnumpy\ndtype\n.", b"\x80\x02cnumpy\nndarray\n.", b"\x80\x02]q\x00r\xff\xff\xff\xff.",
    b"\x80\x02B\xff\xff\xff\x7f.", b"", b".", b"no pickle", pickle.dumps(list(range(99)))[:-5]])
def test_forged_and_damaged_pickles_end_in_a_sentence(written):
    with pytest.raises((UsageError, CheckpointDamaged), match="refused to load|damaged, or no pickle"):
        safe_pickle.load(io.BytesIO(written))


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_random_damage_is_read_or_refused_by_a_sentence(protocol):
    value = {b"data": np.arange(60, dtype=np.uint8).reshape(20, 3), "labels": [1, 2] * 20,
             "x": (1.5, None, np.float64(2.5))}
    content, rng, refused = pickle.dumps(value, protocol), random.Random(protocol), 0
    for _ in range(3000):
        changed = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            safe_pickle.load(io.BytesIO(changed[:rng.choice((None, rng.randrange(len(changed))))]))
        except (UsageError, CheckpointDamaged):
            refused += 1
    assert refused > 1000
