"""Layers that make variables."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import tensor
from fleet_mpi.program.layers.data import data, static_data


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def test_a_tensor_gets_its_value_and_shape_from_assign():
    made = tensor.create_tensor("float32")
    assert tensor.assign(tensor.fill_constant([2, 3], "float32", 4.0), made) is made
    assert made.shape == (2, 3) and (run(made)[0] == np.full((2, 3), 4)).all()
    assert tensor.create_tensor("int64", name="mine", persistable=True).persistable


def test_a_parameter_of_ones_own_is_named_and_initialised():
    bias = tensor.create_parameter([3], "float32", is_bias=True)
    named = tensor.create_parameter([3], "float32", name="mine", default_initializer=Constant(2.0))
    other = tensor.create_parameter([3], "float32", attr=ParamAttr(name="other", initializer=Constant(5.0)))
    assert bias.name == "create_parameter_0.b_0" and named.name == "mine" and other.name == "other"
    assert [list(one) for one in run(bias, named, other)] == [[0] * 3, [2] * 3, [5] * 3]


def test_a_global_variable_is_filled_by_the_startup_program():
    kept = tensor.create_global_var([1], 7.0, "float32", persistable=True, name="kept")
    other = tensor.create_global_var([2], 3, "int64")
    again = tensor.create_global_var([1], 7.0, "float32", persistable=True, name="kept")
    assert again is kept and kept.persistable and kept.stop_gradient
    found = run(kept, other)
    assert float(found[0]) == 7.0 and found[1].tolist() == [3, 3] and found[1].dtype == np.int64


def test_constants_of_every_kind():
    x = data("x", [2])
    found = run(tensor.fill_constant([2], "int64", 10 ** 15 + 1), tensor.ones([2], "float32"),
                tensor.zeros([1, 2], "int32"), tensor.ones_like(x), tensor.zeros_like(x),
                tensor.full_like(x, 3, "int64"),
                tensor.fill_constant_batch_size_like(x, [-1, 1], "float32", 2.0), x=np.zeros((3, 2), "float32"))
    assert [one.tolist() for one in found] == [
        [10 ** 15 + 1] * 2, [1, 1], [[0, 0]], [[1, 1]] * 3, [[0, 0]] * 3, [[3, 3]] * 3, [[2]] * 3]


def test_a_constant_may_go_into_a_variable_that_exists():
    made = tensor.create_tensor("float32")
    assert tensor.fill_constant([2], "float32", 1.0, out=made) is made and made.stop_gradient
    assert run(made)[0].tolist() == [1, 1]


def test_a_shape_may_hold_variables():
    x = data("x", [2])
    rows = tensor.shape(x)
    whole = tensor.fill_constant(rows, "float32", 1.0)
    mixed = tensor.uniform_random([2, tensor.fill_constant([1], "int32", 5)])
    assert whole.shape == (-1, -1) and mixed.shape == (2, -1)
    assert [one.shape for one in run(whole, mixed, x=np.zeros((4, 2), "float32"))] == [(4, 2), (2, 5)]


@pytest.mark.parametrize("given, shape, dtype", [
    (np.arange(6).reshape(2, 3), (2, 3), "int64"), ([1.5, 2.5], (2,), "float32"), (np.ones(2), (2,), "float32"),
    (3, (1,), "int64"), (np.array([True]), (1,), "bool")])
def test_arrays_lists_and_numbers_can_be_assigned(given, shape, dtype):
    made = tensor.assign(given)
    assert made.shape == shape and made.dtype == dtype
    assert (run(made)[0] == np.array(given)).all()


def test_a_word_cannot_be_assigned():
    with pytest.raises(UsageError, match="assign"):
        tensor.assign("word")


def test_shapes_sizes_and_ranges():
    x = data("x", [2])
    found = run(tensor.shape(x), tensor.size(x), tensor.range(0, 10, 4, "int64"),
                tensor.range(1.0, 0.0, -0.25, "float32"), tensor.linspace(0.0, 1.0, 3), tensor.eye(2),
                tensor.eye(1, 2, [2]), tensor.diag(np.array([1, 2])), x=np.zeros((3, 2), "float32"))
    assert [one.tolist() for one in found] == [
        [3, 2], [6], [0, 4, 8], [1, 0.75, 0.5, 0.25], [0, 0.5, 1], [[1, 0], [0, 1]], [[[1, 0]], [[1, 0]]],
        [[1, 0], [0, 2]]]


def test_a_range_up_to_a_fed_number():
    end = static_data("end", [1], "int64")
    assert run(tensor.range(0, end, 1, "int64"), end=np.array([3]))[0].tolist() == [0, 1, 2]


def test_random_numbers():
    x = data("x", [2])
    shapes = [one.shape for one in run(
        tensor.uniform_random([3, 2], min=0.0), tensor.gaussian_random([4]), tensor.randint(5, shape=[2]),
        tensor.randperm(6), tensor.uniform_random_batch_size_like(x, [-1, 3]),
        tensor.gaussian_random_batch_size_like(x, [2, -1], output_dim_idx=1), x=np.zeros((5, 2), "float32"))]
    assert shapes == [(3, 2), (4,), (2,), (6,), (5, 3), (2, 5)]
