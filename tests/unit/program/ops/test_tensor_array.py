"""Ops of program/ops/tensor_array.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import create_lod_tensor
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.control_flow import While
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.math import increment, scale
from fleet_mpi.program.layers.tensor import fill_constant
from fleet_mpi.program.layers.tensor_array import array_length, array_read, array_write, create_array
from tests.unit.program.ops.checking import StandInPlace


def number(value):
    return fill_constant([1], "int64", value)


@pytest.mark.parametrize("place", [None, StandInPlace()])
def test_what_a_loop_writes_stays_though_the_loops_memory_is_used_again(place):
    x = static_data("x", [2])
    i, last = number(0), number(4)
    steps = array_write(x, i)
    more = less_than(i, last)
    with While(more).block():
        before = array_read(steps, i)
        increment(i)
        array_write(scale(before, 2.0), i, array=steps)
        less_than(i, last, cond=more)
    count = array_length(steps)
    values, count = Executor(place).run(feed={"x": np.array([1, 3], "float32")}, fetch_list=[steps, count])
    assert int(count) == 5
    np.testing.assert_array_equal(values, [[1, 3], [2, 6], [4, 12], [8, 24], [16, 48]])


def test_a_tensor_keeps_its_shape_and_sequences():
    x = data("x", [1], lod_level=1)
    steps = create_array("float32")
    array_write(static_data("other", [1]), number(0), steps)
    array_write(x, number(2), steps)
    found = array_read(steps, number(2))
    fed = create_lod_tensor(np.arange(3, dtype="float32").reshape(3, 1), [[1, 2]])
    result, = Executor().run(feed={"x": fed, "other": np.zeros(1, "float32")}, fetch_list=[found], return_numpy=False)
    assert result.recursive_sequence_lengths() == [[1, 2]] and result.shape() == [3, 1]


@pytest.mark.parametrize("place", [1, 3])
def test_a_place_without_a_tensor_is_an_error(place):
    steps = array_write(static_data("x", [1]), number(2))
    found = array_read(steps, number(place))
    with pytest.raises(ProgramError, match=f"no tensor at position {place}; it holds 3"):
        Executor().run(feed={"x": np.zeros(1, "float32")}, fetch_list=[found])
