"""The tensor files are the original's, byte for byte, and damage is said in a sentence."""

import io
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from fleet_mpi.arrays import Rows
from fleet_mpi.checkpoint.formats.tensor_stream import read_rows, read_tensor, read_tensors, write_rows, write_tensor
from fleet_mpi.errors import CheckpointDamaged, UsageError

DTYPES = ("bool", "int16", "int32", "int64", "float16", "float32", "float64", "uint8", "int8")

NO_LOD = "00000000" "0000000000000000"
FLOAT_2_3 = ("00000000" "06000000" "0805" "1002" "1003"
             "00000000" "0000803f" "00000040" "00004040" "00008040" "0000a040")


def written(array, lod=()):
    """The bytes of one tensor."""
    stream = io.BytesIO()
    write_tensor(stream, array, lod)
    return stream.getvalue()


def read(data):
    """The tensor in these bytes."""
    return read_tensor(io.BytesIO(data))


def test_a_float_matrix_has_these_bytes():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert written(array).hex() == NO_LOD + FLOAT_2_3


def test_levels_of_detail_have_these_bytes():
    data = written(np.array([[7], [8], [9]], np.int64), lod=[[0, 2], [0, 1, 3]])
    assert data.hex() == (
        "00000000" "0200000000000000"
        "1000000000000000" "0000000000000000" "0200000000000000"
        "1800000000000000" "0000000000000000" "0100000000000000" "0300000000000000"
        "00000000" "06000000" "0803" "1003" "1001"
        "0700000000000000" "0800000000000000" "0900000000000000")


def test_an_axis_above_127_is_a_varint_of_several_bytes():
    assert written(np.zeros(300, np.uint8)).hex()[24:50] == "00000000" "05000000" "0814" "10ac02"


@pytest.mark.parametrize("dtype, number", list(zip(DTYPES, (0, 1, 2, 3, 4, 5, 6, 20, 21))))
def test_every_dtype_has_its_number(dtype, number):
    data = written(np.zeros(1, dtype))
    assert data[20:24] == bytes([0x08, number, 0x10, 0x01])
    assert read(data)[0].dtype == dtype


def test_selected_rows_have_these_bytes():
    stream = io.BytesIO()
    write_rows(stream, Rows(np.array([4, 1]), np.array([[1.0], [2.0]], np.float32), 10))
    assert stream.getvalue().hex() == (
        "00000000" "0200000000000000" "0400000000000000" "0100000000000000" "0a00000000000000"
        "00000000" "06000000" "0805" "1002" "1001" "0000803f" "00000040")


def test_a_packed_list_of_axes_is_understood():
    array, lod = read(bytes.fromhex(NO_LOD + "00000000" "06000000" "0805" "12020201" "0000803f00000040"))
    assert lod == ()
    assert array.tolist() == [[1.0], [2.0]]


@given(arrays.arrays(st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=5, min_side=0)))
def test_what_was_written_is_read(array):
    found, lod = read(written(array))
    assert (found.dtype, found.shape, lod) == (array.dtype, array.shape, ())
    assert found.tobytes() == array.tobytes()


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=4))
def test_levels_of_detail_come_back(sentences):
    words = [length for sentence in sentences for length in sentence]
    lod = [tuple(np.cumsum([0] + [len(sentence) for sentence in sentences]).tolist()),
           tuple(np.cumsum([0] + words).tolist())]
    array = np.arange(sum(words), dtype=np.float32).reshape(-1, 1)
    found, found_lod = read(written(array, lod))
    assert found_lod == tuple(lod)
    assert np.array_equal(found, array)


def test_values_of_any_layout_are_written_in_c_order_and_little_endian():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert written(np.asfortranarray(array)) == written(array)
    assert written(array.astype(">f4")) == written(array)
    assert written(np.repeat(array, 2, axis=1)[:, ::2]) == written(array)


def test_rows_come_back():
    stream = io.BytesIO()
    rows = Rows(np.array([4, 1, 4]), np.arange(6.0).reshape(3, 2), 5)
    write_rows(stream, rows)
    stream.seek(0)
    found = read_rows(stream)
    assert (found.ids.tolist(), found.height) == ([4, 1, 4], 5)
    assert np.array_equal(found.values, rows.values)


def test_many_tensors_follow_each_other_in_one_stream():
    stream = io.BytesIO()
    arrays_in = [np.float32([1, 2]), np.int64(3), np.zeros((0, 4), bool)]
    for array in arrays_in:
        write_tensor(stream, np.asarray(array))
    stream.seek(0)
    found = [array for array, _ in read_tensors(stream)]
    assert [array.tolist() for array in found] == [[1.0, 2.0], 3, []]
    assert found[2].shape == (0, 4)


def test_what_is_read_can_be_written_to():
    array, _ = read(written(np.zeros(3, np.float32)))
    array += 1
    assert array.tolist() == [1, 1, 1]


class Pipe(io.RawIOBase):
    """A stream that cannot seek and gives a few bytes at a time."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def readable(self):
        """Yes."""
        return True

    def readinto(self, target):
        """At most five bytes."""
        return self._data.readinto(memoryview(target)[:5])


def test_a_stream_that_cannot_seek_and_gives_little_at_a_time_is_read_whole():
    for array in (np.arange(50.0), np.zeros((0, 3), np.int8)):
        found, _ = read_tensor(Pipe(written(array)))
        assert np.array_equal(found, array) and found.shape == array.shape


@pytest.mark.parametrize("end", range(len(bytes.fromhex(NO_LOD + FLOAT_2_3))))
@pytest.mark.parametrize("kind", (io.BytesIO, Pipe))
def test_a_file_cut_anywhere_is_damaged(end, kind):
    with pytest.raises(CheckpointDamaged, match=r"expected \d+ bytes of .*, got \d+"):
        read_tensor(kind(bytes.fromhex(NO_LOD + FLOAT_2_3)[:end]))


@given(st.binary(max_size=80))
def test_any_bytes_at_all_are_a_tensor_or_damaged(data):
    try:
        array, _ = read(data)
    except CheckpointDamaged:
        return
    assert len(written(array)) <= len(data)


@given(st.integers(0, 20), st.integers(0, 255))
def test_any_changed_byte_of_the_head_is_a_tensor_or_damaged(position, value):
    data = bytearray(bytes.fromhex(NO_LOD + FLOAT_2_3))
    data[position] = value
    try:
        read(bytes(data))
    except CheckpointDamaged as damaged:
        assert "offset" in str(damaged)


BARE = "00000000"
ONE_AXIS = BARE + "04000000" "0805"


@pytest.mark.parametrize("text, says", [
    ("01000000" "0000000000000000", "expected version 0 of the tensor, got 1"),
    ("00000000" "0100000000000000" "0700000000000000", "multiple of 8, got 7"),
    ("00000000" "0100000000000000" "ffffffffffffff00", "multiple of 8, got 72057594037927935"),
    ("00000000" "0100000000000000" "f8ffffffffffff00", "LoD offsets, got 0"),
    ("00000000" "0100000000000000" "0800000000000000" "0100000000000000"
     + ONE_AXIS + "1001" "00000000", r"rise from 0, got \[1\]"),
    ("00000000" "0100000000000000" "1000000000000000" "0000000000000000" "0200000000000000"
     + ONE_AXIS + "1001" "00000000", "LoD level 0 to end at 1, got 2"),
    (NO_LOD + "02000000", "expected version 0 of the values, got 2"),
    (NO_LOD + BARE + "ffffffff", "expected the length of the tensor's description, got -1"),
    (NO_LOD + BARE + "02000000" "0863", "expected a data type out of 0 bool, .*, got 99"),
    (NO_LOD + BARE + "02000000" "1001", "expected a data type out of .*, got None"),
    (NO_LOD + BARE + "02000000" "1805", "expected field 1 or 2 .* got tag 0x18"),
    (NO_LOD + BARE + "02000000" "0885", "expected the end of a number"),
    (NO_LOD + BARE + "04000000" "08051205", "expected 5 bytes of axes, got 0"),
    (NO_LOD + BARE + "0d000000" "0805" "10ffffffffffffffffff01", r"size 0 or more, got \[-1\]"),
    (NO_LOD + BARE + "0e000000" "0805" "1000" "10ffffffffffffffff7f", "expected a possible shape"),
    (NO_LOD + ONE_AXIS + "1003" "00000000", "expected 12 bytes of values of a float32 .3., got 4"),
    (NO_LOD + BARE + "04000000" "0800" "1002" "0102", "expected bools to be 0 or 1, got 2"),
])
def test_what_is_wrong_is_said_with_what_was_expected(text, says):
    with pytest.raises(CheckpointDamaged, match=says):
        read(bytes.fromhex(text))


@pytest.mark.parametrize("ids, height, says", [
    ([0, 5], 5, "expected row ids from 0 to 4, got 0 to 5"),
    ([-1, 0], 5, "got -1 to 0"),
    ([0], 5, "expected values of 1 rows, got shape .2."),
])
def test_rows_that_do_not_fit_are_refused_and_damaged(ids, height, says):
    stream = io.BytesIO()
    with pytest.raises(UsageError, match=says):
        write_rows(stream, Rows(np.array(ids), np.zeros(2, np.float32), height))
    assert stream.getvalue() == b""
    head = struct.pack(f"<IQ{len(ids)}qq", 0, len(ids), *ids, height)
    bare = written(np.zeros(2, np.float32))[12:]
    with pytest.raises(CheckpointDamaged, match=says):
        read_rows(io.BytesIO(head + bare))


def test_a_damaged_file_is_named_with_the_offset(tmp_path):
    path = tmp_path / "fc_0.w_0"
    path.write_bytes(bytes.fromhex(NO_LOD + FLOAT_2_3)[:-4])
    with open(path, "rb") as stream, pytest.raises(CheckpointDamaged) as raised:
        read_tensor(stream)
    assert str(raised.value) == (
        f"{str(path)!r}, offset 26: expected 24 bytes of values of a float32 [2, 3], got 20. "
        f"The file is damaged or is no tensor file; take an older copy")


def test_an_array_without_a_number_is_refused_before_anything_is_written():
    stream = io.BytesIO()
    with pytest.raises(UsageError, match="no dtype complex64; it has: bool, int16"):
        write_tensor(stream, np.zeros(2, np.complex64))
    assert stream.getvalue() == b""


def test_offsets_that_do_not_fit_the_array_are_refused():
    with pytest.raises(UsageError, match="expected LoD level 0 to end at 2, got 3"):
        written(np.zeros(2, np.float32), lod=[[0, 3]])
