"""The reading side of the multislot format: columns, feeds, and errors that name the place."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fleet_mpi.data import slots as module
from fleet_mpi.data.slots import Records, batches_of, parse, slots_of
from fleet_mpi.errors import UsageError


def variable(name, shape, dtype="int64", lod_level=0):
    return SimpleNamespace(name=name, shape=shape, dtype=dtype, lod_level=lod_level)


WORDS = variable("words", (-1, 1), lod_level=1)
DENSE = variable("dense", (-1, 2), "float32")
LABEL = variable("label", (-1, 1))
THREE = slots_of([WORDS, DENSE, LABEL])


def lines_of(samples):
    return [f"{len(words)} {' '.join(map(str, words))} 2 {a} {b} 1 {label}\n".encode()
            for words, a, b, label in samples]


def read_back(records):
    feed = records.feed()
    flat, lengths = feed["words"]
    starts = np.cumsum([0, *lengths])
    return [(flat[start:start + length, 0].tolist(), *row, label) for start, length, row, label in
            zip(starts, lengths, feed["dense"].tolist(), feed["label"][:, 0].tolist())]


SAMPLES = st.lists(st.tuples(st.lists(st.integers(-2 ** 63, 2 ** 63 - 1), min_size=1, max_size=4),
                             st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False),
                             st.integers(0, 1)), min_size=1, max_size=12)


@given(SAMPLES)
def test_parsing_gives_back_what_was_written(samples):
    assert read_back(parse(lines_of(samples), THREE, "file")) == samples


@given(SAMPLES, st.randoms(use_true_random=False))
def test_taking_samples_in_any_order_moves_whole_samples(samples, rng):
    order = list(range(len(samples)))
    rng.shuffle(order)
    taken = parse(lines_of(samples), THREE, "file").take(np.array(order))
    assert read_back(taken) == [samples[number] for number in order]


@given(SAMPLES, st.integers(1, 5), st.integers(1, 5))
def test_batches_do_not_depend_on_how_the_stream_was_cut(samples, block, batch_size):
    lines = lines_of(samples)
    parts = (parse(lines[start:start + block], THREE, "file") for start in range(0, len(lines), block))
    batches = [read_back(records) for records in batches_of(parts, THREE, batch_size)]
    assert batches == [samples[start:start + batch_size] for start in range(0, len(samples), batch_size)]


def test_feeds_have_the_variables_dtypes_and_shapes():
    image = variable("image", (-1, 3, 2, 2), "float32")
    number = variable("number", (-1,), "int32")
    feed = parse([b"12 " + b"1.5 " * 12 + b"1 7"] * 2, slots_of([image, number]), "file").feed()
    assert feed["image"].shape == (2, 3, 2, 2) and feed["image"].dtype == np.float32
    assert feed["number"].tolist() == [7, 7] and feed["number"].dtype == np.int32


def test_ragged_rows_of_several_values_are_counted_in_rows():
    boxes = slots_of([variable("boxes", (-1, 4), "float32", 1)])
    values, lengths = parse([b"8 1 2 3 4 5 6 7 8", b"4 9 9 9 9"], boxes, "file").feed()["boxes"]
    assert values.shape == (3, 4) and lengths == [2, 1]
    with pytest.raises(UsageError, match="multiple of 4"):
        parse([b"3 1 2 3"], boxes, "file")


def test_a_dense_variable_of_unknown_width_takes_what_is_there_if_it_is_even():
    open_width = slots_of([variable("x", (-1, -1), "float32")])
    assert parse([b"3 1 2 3", b"3 4 5 6"], open_width, "file").feed()["x"].shape == (2, 3)
    with pytest.raises(UsageError, match="'x' has lod_level 0"):
        parse([b"3 1 2 3", b"1 4"], open_width, "file").feed()


def test_ids_of_the_upper_half_of_64_bits_keep_their_bits():
    ids, _ = parse([b"2 18446744073709551615 9223372036854775808"], slots_of([WORDS]), "file").feed()["words"]
    assert ids[:, 0].view(np.uint64).tolist() == [2 ** 64 - 1, 2 ** 63]


def test_blank_lines_are_skipped_and_still_counted():
    assert len(parse([b"1 1\n", b"\n", b"1 2\n"], slots_of([LABEL]), "file")) == 2
    with pytest.raises(UsageError, match="line 3"):
        parse([b"1 1\n", b"\n", b"1 x\n"], slots_of([LABEL]), "file")


def test_leading_groups_are_dropped():
    records = parse([b"1 id7 1 3", b"1 id8 1 4"], slots_of([LABEL]), "file", leading=1)
    assert records.feed()["label"].tolist() == [[3], [4]]
    with pytest.raises(UsageError, match="in front"):
        parse([b"2 id7 1 3", b"1 id8 1 4"], slots_of([LABEL]), "file", leading=1)


@pytest.mark.parametrize("line, said", [
    (b"2 5 6 2 0.5 1.5", "'label' is missing: the line ends after 2 of 3"),
    (b"2 5 6 2 0.5 1.5 1", "'label': 1 values announced, 0 there"),
    (b"x 5", "'words': expected the number of its values, got 'x'"),
    (b"0 2 0.5 1.5 1 1", "'words': 0 values; a slot has at least one"),
    (b"-1 2 0.5 1.5 1 1", "'words': -1 values"),
    (b"1 5.5 2 0.5 1.5 1 1", "'words': expected int64, got '5.5'"),
    (b"1 99999999999999999999 2 0.5 1.5 1 1", "'words': expected int64"),
    (b"1 5 3 0.5 1.5 2.5 1 1", r"'dense': expected 2 values for shape \[2\], got 3"),
    (b"1 5 2 0.5 abc 1 1", "'dense': expected float32, got 'abc'"),
    (b"1 5 2 0.5 1.5 1 1 7 7", "2 more word"),
])
@pytest.mark.parametrize("before", [0, 2])
def test_a_malformed_line_names_file_line_and_slot(line, said, before):
    good = [b"1 5 2 0.5 1.5 1 1"] * before
    with pytest.raises(UsageError, match=f"part-7, line {101 + before}: .*{said}"):
        parse([*good, line], THREE, "part-7", 101)


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), SimpleNamespace(name="FP32"),
                                   "VarType.FP32", "paddle.float32"])
def test_dtypes_are_understood_however_they_are_written(dtype):
    name = dtype if not isinstance(dtype, type) else np.dtype(dtype)
    assert slots_of([variable("x", (-1, 1), name)])[0].dtype == np.float32


def test_variables_that_a_file_cannot_fill_are_refused():
    with pytest.raises(UsageError, match="bool"):
        slots_of([variable("x", (-1, 1), "bool")])
    with pytest.raises(UsageError, match="lod_level 2"):
        slots_of([variable("x", (-1, 1), "int64", 2)])
    with pytest.raises(UsageError, match="set_use_var"):
        slots_of([])


def test_one_slot_can_be_exchanged_between_samples():
    records = parse([b"1 1 1 10", b"1 2 1 20"], slots_of([variable("a", (-1, 1)), LABEL]), "file")
    feed = records.with_slot_taken("a", np.array([1, 0])).feed()
    assert feed["a"].tolist() == [[2], [1]] and feed["label"].tolist() == [[10], [20]]
    with pytest.raises(UsageError, match="'lable'.*did you mean 'label'"):
        records.with_slot_taken("lable", np.array([1, 0]))


@given(SAMPLES)
def test_the_quick_and_the_careful_way_agree(samples):
    lines = lines_of(samples)
    rows = [line.split() for line in lines]
    careful = module._parse_each(rows, THREE, "file", 1, 0)
    quick = module._parse_even(rows, THREE, 0)
    if quick is not None:
        assert read_back(quick) == read_back(careful)
    assert isinstance(careful, Records)


def test_lines_of_one_layout_take_the_quick_way():
    assert module._parse_even([b"1 5 2 0.5 1.5 1 1".split()] * 3, THREE, 0) is not None
    assert module._parse_even([b"1 5 2 0.5 1.5 1 1".split(), b"2 5 6 2 0.5 1.5 1 1".split()], THREE, 0) is None
