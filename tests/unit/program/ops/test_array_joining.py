"""Ops of program/ops/array_joining.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.math import scale
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.tensor import fill_constant
from fleet_mpi.program.layers.tensor_array import array_read, array_write, create_array, tensor_array_to_tensor
from tests.unit.program.differences import check_gradients
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(9)


def along_the_tree(inputs, attrs):
    ids, parents = inputs["Ids"], inputs["Parents"]
    out = np.empty_like(ids)
    for batch in range(ids.shape[1]):
        for beam in range(ids.shape[2]):
            at = beam
            for step in reversed(range(len(ids))):
                out[step, batch, beam] = ids[step, batch, at]
                at = parents[step, batch, at]
    return {"Out": out}


CASES = [Case("gather_tree", {"Ids": rng.integers(0, 9, (4, 2, 3)), "Parents": rng.integers(0, 3, (4, 2, 3))},
              expect=along_the_tree),
         Case("gather_tree",
              {"Ids": rng.integers(0, 9, (1, 1, 2), np.int32), "Parents": np.array([[[1, 1]]], np.int32)},
              expect=along_the_tree)]

test_forward, test_device = checks(CASES)


def three(axis):
    """An array of three tensors that differ in size along an axis."""
    x = static_data("x", [2, 3], "float64")
    x.stop_gradient = False
    array = create_array("float64")
    for where, factor in enumerate((1.0, -2.0, 0.5)):
        array_write(scale(x * x, factor), fill_constant([1], "int64", where), array)
    return x, array


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("use_stack", [False, True])
def test_tensors_are_joined_and_each_has_its_part_of_the_gradient(axis, use_stack):
    x, array = three(axis)
    out, sizes = tensor_array_to_tensor(array, axis, use_stack=use_stack)
    values = rng.normal(size=(2, 3))
    parts = [values * values * factor for factor in (1.0, -2.0, 0.5)]
    found, count = Executor().run(feed={"x": values}, fetch_list=[out, sizes])
    np.testing.assert_allclose(found, (np.stack if use_stack else np.concatenate)(parts, axis=axis))
    assert count.tolist() == ([1] * 3 if use_stack else [(2, 3)[axis]] * 3) and count.dtype == np.int32
    again = array_read(array, fill_constant([1], "int64", 1))
    check_gradients(reduce_sum(out * out) + reduce_sum(again), [x], {"x": values})


def test_an_array_with_a_gap_is_refused():
    x = static_data("x", [2], "float64")
    out, _ = tensor_array_to_tensor(array_write(x, fill_constant([1], "int64", 1)), 0)
    with pytest.raises(ProgramError, match="at every position.*with 1"):
        Executor().run(feed={"x": np.zeros(2)}, fetch_list=[out])
