"""The rule that cuts: the compiled form against the plain one, and what holds for every cut."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fleet_mpi.placement.split import compiled_cut, cut, cut_many, cut_plainly

variables = st.lists(st.tuples(st.integers(0, 5000) | st.integers(0, 1 << 40), st.integers(1, 3000)), max_size=20)


def columns(found):
    """(sizes, widths) of some (rows, width)."""
    both = np.array([(rows * width, width) for rows, width in found], np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


@pytest.mark.parametrize("form", (cut_many, lambda *arguments: compiled_cut()(*arguments)), ids=("loop", "compiled"))
@hypothesis.given(variables, st.integers(1, 300), st.integers(1, 1 << 16) | st.just(1 << 62))
def test_all_forms_of_the_rule_agree(form, found, most, min_block_size):
    for got, expected in zip(form(*columns(found), most, min_block_size),
                             cut_plainly(*columns(found), most, min_block_size)):
        assert got.dtype == expected.dtype == np.int64 and np.array_equal(got, expected)


@hypothesis.given(st.integers(1, 10**7), st.integers(1, 3000), st.integers(1, 300), st.integers(1, 1 << 16))
def test_blocks_have_whole_rows_and_leave_nothing_over(rows, width, most, min_block_size):
    count, block_size = cut(rows * width, width, most, min_block_size)
    assert 1 <= count <= most and block_size % width == 0
    assert (count - 1) * block_size < rows * width <= count * block_size
    assert count == 1 or block_size >= min_block_size
    assert rows * width >= 2 * min_block_size or count == 1


@pytest.mark.parametrize("size, width, most, least, expected", (
    (1000 * 1000, 1000, 200, 8192, (112, 9000)), (28 * 784, 784, 10, 1024, (10, 2352)), (16383, 1, 4, 8192, (1, 16383)),
    (50_000, 50_000, 5, 8192, (1, 50_000)), (0, 7, 5, 1, (1, 0)), (0, 0, 5, 1, (1, 0)),
))
def test_a_cut_by_hand(size, width, most, least, expected):
    assert cut(size, width, most, least) == expected
