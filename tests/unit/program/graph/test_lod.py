"""LoD arithmetic: offsets and lengths, what is wrong with them, levels counted in rows."""

import pytest
from hypothesis import given, strategies as st

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph import lod

lengths = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@st.composite
def nested_lengths(draw, levels=3):
    """Lengths of up to three levels that fit each other, outermost first."""
    found = [draw(lengths)]
    for _ in range(draw(st.integers(0, levels - 1))):
        found.append(draw(st.lists(st.integers(0, 4), min_size=sum(found[-1]), max_size=sum(found[-1]))))
    return found


def rows_of(levels):
    return sum(levels[-1])


@given(nested_lengths())
def test_lengths_come_back_from_offsets(levels):
    assert lod.to_lengths(lod.from_lengths(levels)) == levels


@given(nested_lengths())
def test_offsets_are_a_tuple_of_tuples_of_int(levels):
    offsets = lod.from_lengths(levels)
    assert lod.from_offsets([list(level) for level in offsets]) == offsets
    assert hash(offsets) is not None
    assert all(type(one) is int for level in offsets for one in level)


@given(nested_lengths())
def test_offsets_made_of_lengths_have_no_problem(levels):
    assert lod.problem(lod.from_lengths(levels), rows_of(levels)) is None


@given(nested_lengths(), st.integers(1, 3))
def test_missing_and_surplus_rows_are_a_problem(levels, surplus):
    offsets = lod.from_lengths(levels)
    assert f"there are {rows_of(levels) + surplus}" in lod.problem(offsets, rows_of(levels) + surplus)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6), st.data())
def test_a_level_that_goes_backwards_is_a_problem(some, data):
    offsets = list(lod.from_lengths([some])[0])
    offsets[data.draw(st.integers(1, len(some) - 1))] = offsets[-1] + 1
    outer = tuple(range(len(some) + 1))
    assert "level 1 of the LoD goes backwards" in lod.problem((outer, tuple(offsets)), sum(some))


@pytest.mark.parametrize("level", [(), (1, 3)])
def test_a_level_starts_with_0(level):
    assert "must start with 0" in lod.problem((level,), 3)


@given(nested_lengths())
def test_levels_counted_in_rows_equal_the_sums_of_what_lies_below(levels):
    offsets = lod.from_lengths(levels)
    for level in range(len(levels)):
        rows = lod.row_offsets(offsets, level)
        assert list(rows) == rows_by_hand(levels, level)
        assert lod.row_offsets(offsets, level - len(levels)) == rows


def rows_by_hand(levels, level):
    """Add up the rows of each sequence, from the innermost level outwards."""
    sizes = [1] * rows_of(levels)
    for depth in range(len(levels) - 1, level - 1, -1):
        parts, start = [], 0
        for count in levels[depth]:
            parts.append(sum(sizes[start:start + count]))
            start += count
        sizes = parts
    totals = [0]
    for size in sizes:
        totals.append(totals[-1] + size)
    return totals


def test_a_level_of_nothing_is_refused_with_the_remedy():
    with pytest.raises(UsageError, match="lod_level=1"):
        lod.row_offsets((), -1)
