"""Ops of program/ops/clipping.py; rows are tested in tests/unit/program/build/test_clip.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import VarType
from tests.unit.program.ops.checking import Case, check_forward, checks

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 7))
NORM = float(np.sqrt((X ** 2).sum()))

CASES = [
    Case("squared_l2_norm", {"X": X}, expect={"Out": np.array([NORM ** 2])}),
    Case("squared_l2_norm", {"X": X[0, :1]}, expect={"Out": X[0, :1] ** 2}),
    Case("global_norm_scale", {"X": np.array([16.0])}, {"clip_norm": 2.0}, {"Out": np.array([0.5])}),
    Case("global_norm_scale", {"X": np.array([16.0])}, {"clip_norm": 5.0}, {"Out": np.array([1.0])}),
    Case("multiply_by_scale", {"X": X, "Scale": np.array([0.3])}, expect={"Out": X * 0.3}),
    Case("clip_by_norm", {"X": X}, {"max_norm": 1.5}, {"Out": X * 1.5 / NORM}),
    Case("clip_by_norm", {"X": X}, {"max_norm": 150.0}, {"Out": X}),
]

test_forward, test_device = checks(CASES)


def test_float32_gradients_stay_float32_and_their_squares_are_summed_in_float64():
    tiny = np.full((4096,), 1e-4, "float32")
    case = Case("squared_l2_norm", {"X": tiny}, expect={"Out": (tiny.astype(float) ** 2).sum(keepdims=True)})
    check_forward(case, widen=False)
    scaled = Case("multiply_by_scale", {"X": tiny, "Scale": np.array([0.5])}, expect={"Out": tiny * np.float32(0.5)})
    check_forward(scaled, widen=False)


def rows_op(type, rows, **attrs):
    block = default_main_program().global_block()
    block.create_var(name="rows", shape=[rows.height, 2], type=VarType.SELECTED_ROWS)
    block.append_op(type, {"X": ["rows"]}, {"Out": ["out"]}, attrs)
    global_scope().var("rows").value = rows
    assert block.var("out").type == VarType.SELECTED_ROWS
    return Executor().run(fetch_list=["out"], return_numpy=False)[0]


def test_rows_of_equal_id_become_one():
    merged = rows_op("merge_selected_rows", Rows(np.array([3, 1, 3]), np.ones((3, 2), "float32"), 4))
    assert merged.ids.tolist() == [3, 1]
    np.testing.assert_array_equal(merged.values, [[2, 2], [1, 1]])


def test_an_id_outside_the_table_is_an_error():
    with pytest.raises(ProgramError, match="id 9 .* is outside the table of 4 rows"):
        rows_op("merge_selected_rows", Rows(np.array([3, 9]), np.ones((2, 2), "float32"), 4))


def test_values_of_rows_are_clipped():
    clipped = rows_op("clip_rows", Rows(np.array([3, 1]), np.array([[2, -2], [0.5, 9]], "float32"), 4),
                      min=-1.0, max=3.0)
    np.testing.assert_array_equal(clipped.values, [[2, -1], [0.5, 3]])


def test_the_norm_of_rows_has_the_bits_of_the_dense_norm_whatever_the_order_of_the_ids():
    block, ids = default_main_program().global_block(), rng.permutation(300)[:70]
    rows = Rows(ids, rng.normal(size=(70, 3)).astype("float32"), 300)
    block.create_var(name="rows", shape=[300, 3], type=VarType.SELECTED_ROWS)
    block.create_var(name="dense", shape=[300, 3], dtype="float32", persistable=True)
    block.append_op("squared_l2_norm", {"X": ["rows"]}, {"Out": ["by_rows"]})
    block.append_op("squared_l2_norm", {"X": ["dense"]}, {"Out": ["by_all"]})
    block.append_op("clip_by_norm", {"X": ["rows"]}, {"Out": ["some"]}, {"max_norm": 2.0})
    block.append_op("clip_by_norm", {"X": ["dense"]}, {"Out": ["all"]}, {"max_norm": 2.0})
    global_scope().var("rows").value = rows
    global_scope().var("dense").put(rows.to_dense())
    by_rows, by_all, some, all = Executor().run(fetch_list=["by_rows", "by_all", "some", "all"], return_numpy=False)
    assert np.array(by_rows) == np.array(by_all)
    np.testing.assert_array_equal(some.to_dense(), np.array(all))


def test_the_norm_of_rows_that_repeat_is_that_of_their_sum():
    block = default_main_program().global_block()
    block.create_var(name="rows", shape=[4, 1], type=VarType.SELECTED_ROWS)
    block.append_op("squared_l2_norm", {"X": ["rows"]}, {"Out": ["out"]})
    global_scope().var("rows").value = Rows(np.array([2, 2]), np.ones((2, 1), "float32"), 4)
    assert Executor().run(fetch_list=["out"])[0] == 4.0
