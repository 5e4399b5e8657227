"""Options of modes are checked, and refused with a sentence that names them."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.modes import options


def test_whole_numbers_may_be_of_any_kind_of_number():
    assert [options.whole("k", value, 1) for value in (3, 3.0, np.int64(3), np.float32(3))] == [3] * 4


@pytest.mark.parametrize("value", (0, 1.5, "3", None, True, float("inf"), float("nan")))
def test_what_is_no_whole_number_in_range_is_refused(value):
    with pytest.raises(UsageError, match="^k: expected a whole number from 1 up, got "):
        options.whole("k", value, 1)


@pytest.mark.parametrize("value", (-0.1, 2.1, "1", None, False, float("nan")))
def test_what_is_no_number_in_range_is_refused(value):
    with pytest.raises(UsageError, match="^x: expected a number from 0.0 to 2.0, got "):
        options.number("x", value, 0.0, 2.0)


def test_numbers_may_be_infinite_where_there_is_no_end():
    assert options.number("x", float("inf"), 0.0) == float("inf")


def test_zero_and_one_are_truth_values():
    assert [options.yes_or_no("x", value) for value in (0, 1, True, False, np.bool_(True))] == [
        False, True, True, False, True]


@pytest.mark.parametrize("value", (2, "True", None))
def test_what_is_no_truth_value_is_refused(value):
    with pytest.raises(UsageError, match="^x: expected True or False, got "):
        options.yes_or_no("x", value)
