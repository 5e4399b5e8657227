"""Layers of program/layers/positions.py, in the forms of the documentation."""

import numpy as np

from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import positions as layers
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.embedding import embedding_v2
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.tensor import fill_constant

A = np.arange(12, dtype="float32").reshape(3, 4)
B = -A


def run(*fetches, **feed):
    return Executor().run(feed=feed, fetch_list=list(fetches))


def test_parts_and_places():
    a, b, ids = static_data("a", [3, 4]), static_data("b", [3, 4]), static_data("ids", [3, 1], "int32")
    small, two = static_data("small", [2, 2]), fill_constant([1], "int32", 2)
    where, line = static_data("where", [2, 1], "int64"), static_data("line", [4])
    cases = {
        layers.multiplex([a, b], ids): np.stack([B[0], A[1], B[2]]),
        layers.pad_constant_like(a, small, 7.0): [[1, 1, 7, 7], [1, 1, 7, 7], [7] * 4],
        layers.crop(a, small, [1, 1]): A[1:3, 1:3], layers.crop(a, [2, 3]): A[:2, :3],
        layers.crop(a, [2, -1], offsets=fill_constant([2], "int32", 1)): A[1:3, 1:],
        layers.crop_tensor(a, [two, -1], [0, two]): A[:2, 2:],
        layers.crop_tensor(a, fill_constant([2], "int32", 2)): A[:2, :2],
        layers.scatter_nd_add(line, where, static_data("new", [2])): [0, 5, 0, 1],
        layers.scatter_nd(where, static_data("new", [2]), [4]): [0, 5, 0, 1],
        layers.tril(a, -1): np.tril(A, -1), layers.triu(a): np.triu(A),
        layers.masked_select(a, a > 9.0): [10, 11], layers.rank(a): [2],
        layers.allclose(a, b): [False], layers.allclose(a, b, atol=100.0): [True],
    }
    found = run(*cases, a=A, b=B, ids=np.array([[1], [0], [1]], "int32"), small=np.ones((2, 2), "float32"),
                where=np.array([[1], [3]]), line=np.zeros(4, "float32"), new=np.array([5, 1], "float32"))
    for (var, want), got in zip(cases.items(), found):
        np.testing.assert_array_equal(got, np.asarray(want), err_msg=var.name)


def test_grids_and_distinct_elements():
    one, two = static_data("one", [2]), static_data("two", [3])
    grids = layers.meshgrid([one, two])
    values, first, which, count = layers.unique_sorted(static_data("ids", [-1], "int64"), True, True, True)
    plain = layers.unique_sorted(static_data("ids", [-1], "int64"))
    drawn = layers.multinomial(static_data("shares", [2]), 3, replacement=True)
    found = run(*grids, values, first, which, count, plain, drawn, one=np.array([1, 2], "float32"),
                two=np.array([3, 4, 5], "float32"), ids=np.array([5, 2, 5]), shares=np.array([0, 1], "float32"))
    assert [one.tolist() for one in found] == [
        [[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]], [2, 5], [1, 0], [1, 0, 1], [1, 2], [2, 5], [1, 1, 1]]


def test_a_row_gradient_merged_and_as_a_tensor():
    ids = static_data("ids", [4], "int64")
    looked_up = embedding_v2(ids, [6, 2], is_sparse=True)
    (_, grad), = append_backward(reduce_sum(looked_up))
    merged = layers.get_tensor_from_selected_rows(layers.merge_selected_rows(grad))
    raw = layers.get_tensor_from_selected_rows(grad)
    executor = Executor()
    executor.run(default_startup_program())
    one, other = executor.run(feed={"ids": np.array([3, 1, 3, 3])}, fetch_list=[merged, raw])
    assert one.tolist() == [[3, 3], [1, 1]] and other.tolist() == [[1, 1]] * 4
