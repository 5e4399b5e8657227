"""IfElse, and the ops that part rows and put them together."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import create_lod_tensor
from fleet_mpi.program.layers.activation import tanh
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.if_else import IfElse, merge_lod_tensor, split_lod_tensor
from fleet_mpi.program.layers.math import matmul, scale
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.tensor import fill_constant
from tests.unit.program.differences import check_gradients

rng = np.random.default_rng(8)
X, W = rng.normal(size=(5, 3)), rng.normal(size=(3, 2))
FLAGS = np.array([[True], [False], [False], [True], [False]])


def fed(name, shape, dtype="float64", lod_level=0):
    var = static_data(name, shape, dtype, lod_level=lod_level)
    var.stop_gradient = dtype != "float64"
    return var


def network():
    x, w, flags = fed("x", [-1, 3]), fed("w", [3, 2]), fed("flags", [-1, 1], "bool")
    ways = IfElse(flags)
    with ways.true_block():
        ways.output(tanh(matmul(ways.input(x), w)))
    with ways.false_block():
        ways.output(scale(matmul(ways.input(x), w), 2.0))
    out, = ways()
    return x, w, out


@pytest.mark.parametrize("flags", [FLAGS, np.ones((5, 1), bool), np.zeros((5, 1), bool)])
def test_every_row_goes_its_way_and_comes_back_to_its_place(flags):
    x, w, out = network()
    feed = {"x": X.copy(), "w": W.copy(), "flags": flags}
    found, = Executor().run(feed=feed, fetch_list=[out])
    np.testing.assert_allclose(found, np.where(flags, np.tanh(X @ W), 2 * X @ W), rtol=1e-12)
    check_gradients(reduce_sum(out * out), [x, w], feed)


def test_sequences_are_parted_and_come_back_whole():
    x, flags = fed("x", [-1, 3], lod_level=1), fed("flags", [-1, 1], "bool")
    true, false = split_lod_tensor(x, flags)
    out = merge_lod_tensor(tanh(true), false, x, flags)
    feed = {"x": create_lod_tensor(X.copy(), [[2, 1, 2]], None), "flags": np.array([[False], [True], [True]])}
    first, second, whole = Executor().run(feed=feed, fetch_list=[true, false, out], return_numpy=False)
    assert first.recursive_sequence_lengths() == [[1, 2]] and second.recursive_sequence_lengths() == [[2]]
    np.testing.assert_allclose(whole.numpy(), np.concatenate([X[:2], np.tanh(X[2:])]))
    assert whole.recursive_sequence_lengths() == [[2, 1, 2]]
    check_gradients(reduce_sum(out * out) + reduce_sum(true), [x], feed)


def test_a_mask_for_other_rows_is_refused():
    x, flags = fed("x", [-1, 3]), fed("flags", [-1, 1], "bool")
    true, _ = split_lod_tensor(x, flags)
    with pytest.raises(ProgramError, match="for 5 rows.*has 4"):
        Executor().run(feed={"x": X[:4], "flags": FLAGS}, fetch_list=[true])


def test_the_limit_of_a_book_chapter():
    """As tests of the original part digits: label < 5."""
    label = static_data("label", [-1, 1], "int64")
    ways = IfElse(less_than(label, fill_constant([1], "int64", 5)))
    with ways.true_block():
        ways.output(scale(ways.input(label), 10.0))
    with ways.false_block():
        ways.output(ways.input(label))
    found, = Executor().run(feed={"label": np.array([[7], [1], [5]])}, fetch_list=ways())
    assert found.ravel().tolist() == [7, 10, 5]


def test_wrong_use_says_what_is_expected():
    x, flags = fed("x", [-1, 3]), fed("flags", [-1, 1], "bool")
    ways = IfElse(flags)
    with pytest.raises(UsageError, match="within true_block"):
        ways.input(x)
    with ways.true_block():
        ways.output(ways.input(x))
    with pytest.raises(UsageError, match="got 1 and 0"):
        ways()
    with pytest.raises(UsageError, match="output in each block"):
        with ways.false_block():
            ways.input(x)
