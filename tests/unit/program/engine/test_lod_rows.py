"""Row numbers of sequence ops, against lists of rows cut, turned and joined in Python."""

import numpy as np
from hypothesis import given, strategies as st

from fleet_mpi import testing
from fleet_mpi.program.engine import lod_rows

lengths = st.lists(st.integers(0, 5), min_size=1, max_size=6)


def level(some):
    return lod_rows.level_of(np.array(some))


def sequences(some):
    """The rows of each sequence as lists."""
    ends = np.cumsum(some)
    return [list(range(end - size, end)) for size, end in zip(some, ends)]


def flat(lists):
    return [row for rows in lists for row in rows]


@given(lengths)
def test_lengths_come_back_from_a_level(some):
    assert lod_rows.lengths_of(level(some)).tolist() == some
    assert all(type(offset) is int for offset in level(some))


@given(lengths)
def test_first_and_last_rows(some):
    assert lod_rows.first_rows(level(some)).tolist() == [rows[0] if rows else -1 for rows in sequences(some)]
    assert lod_rows.last_rows(level(some)).tolist() == [rows[-1] if rows else -1 for rows in sequences(some)]


@given(lengths)
def test_reversed_rows(some):
    assert lod_rows.reversed_rows(level(some)).tolist() == flat(rows[::-1] for rows in sequences(some))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6))
def test_repeated_rows(pairs):
    some, counts = [length for length, _ in pairs], [count for _, count in pairs]
    expected = flat(rows * count for rows, count in zip(sequences(some), counts))
    assert lod_rows.repeated_rows(level(some), np.array(counts)).tolist() == expected


@given(lengths, st.integers(0, 3))
def test_padded_rows(some, surplus):
    length = max(some) + surplus
    expected = flat(rows + [-1] * (length - len(rows)) for rows in sequences(some))
    assert lod_rows.padded_rows(level(some), length).tolist() == expected


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=5))
def test_joined_rows(triples):
    inputs = [list(some) for some in zip(*triples)]
    places, joined = lod_rows.joined_rows([level(some) for some in inputs])
    out = [None] * joined[-1]
    for number, (some, place) in enumerate(zip(inputs, places)):
        for row, at in zip(flat(sequences(some)), place):
            out[at] = (number, row)
    expected = flat([(number, row) for number, some in enumerate(inputs) for row in sequences(some)[i]]
                    for i in range(len(triples)))
    assert out == expected


def test_a_level_is_made_an_array_once_for_each_kind_of_array():
    some = (0, 2, 5)
    assert lod_rows.offsets_array(some) is lod_rows.offsets_array((0, 2, 5))
    on_device = lod_rows.offsets_array(some, testing.device)
    assert isinstance(on_device, testing.DeviceArray) and on_device.get().tolist() == [0, 2, 5]


@given(lengths, st.booleans())
def test_time_order_takes_a_row_of_each_sequence_that_lasts(some, is_reverse):
    order, rows, counts = lod_rows.time_order(level(some), is_reverse)
    assert [some[i] for i in order] == sorted(some, reverse=True)
    each = [part[::-1] if is_reverse else part for part in sequences(some)]
    steps = [[each[i][step] for i in order if some[i] > step] for step in range(max(some))]
    assert rows.tolist() == flat(steps)
    assert counts.tolist() == [len(step) for step in steps]
