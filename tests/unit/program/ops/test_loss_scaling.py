"""Ops of program/ops/loss_scaling.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import VarType
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(3, 4)), rng.normal(size=5)
SPOILT = np.where(np.arange(5) == 3, np.nan, Y)


def update(is_bad, scale, good, bad, expect):
    """expect: scale, good and bad steps after."""
    attrs = {"incr_every_n_steps": 3, "decr_every_n_nan_or_inf": 2, "incr_ratio": 4.0, "decr_ratio": 0.5}
    kept = [np.zeros_like(X), np.zeros_like(Y)] if is_bad else [X, Y]
    return Case("update_loss_scaling",
                {"X": [X, Y], "FoundInfinite": np.array([is_bad]), "PrevLossScaling": np.array([scale]),
                 "InGoodSteps": np.array([good]), "InBadSteps": np.array([bad])}, attrs,
                {"Out": kept, "LossScaling": np.array([expect[0]]), "OutGoodSteps": np.array([expect[1]]),
                 "OutBadSteps": np.array([expect[2]])}, note=f"{is_bad}{good}{bad}")


CASES = [
    Case("check_finite_and_unscale", {"X": [X, Y], "Scale": np.array([4.0])},
         expect={"Out": [X / 4, Y / 4], "FoundInfinite": np.array([False])}),
    Case("check_finite_and_unscale", {"X": [X, SPOILT, Y], "Scale": np.array([4.0])},
         expect={"Out": [X / 4, SPOILT / 4, Y / 4], "FoundInfinite": np.array([True])}),
    Case("check_finite_and_unscale", {"X": [X * np.inf], "Scale": np.array([4.0])},
         expect={"Out": [X * np.inf], "FoundInfinite": np.array([True])}),
    update(False, 8.0, 0, 1, (8.0, 1, 0)),
    update(False, 8.0, 2, 0, (32.0, 0, 0)),
    update(False, 3e38, 2, 0, (3e38, 0, 0)),
    update(True, 8.0, 2, 0, (8.0, 0, 1)),
    update(True, 8.0, 2, 1, (4.0, 0, 0)),
    update(True, 1.5, 2, 1, (1.0, 0, 0)),
]

test_forward, test_device = checks(CASES)


@pytest.mark.parametrize("out", ["rows", "other"])
def test_the_rows_of_a_row_gradient_are_looked_at_and_unscaled(out):
    block = default_main_program().global_block()
    block.create_var(name="rows", shape=[4, 2], type=VarType.SELECTED_ROWS)
    block.create_var(name="scale", shape=[1], dtype="float32", persistable=True)
    block.append_op("check_finite_and_unscale", {"X": ["rows"], "Scale": ["scale"]},
                    {"Out": [out], "FoundInfinite": ["found"]})
    global_scope().var("scale").get_tensor().set(np.array([2.0], "float32"))
    global_scope().var("rows").value = Rows(np.array([3, 1]), np.array([[2, 4], [6, np.inf]], "float32"), 4)
    rows, found = Executor().run(fetch_list=[out, "found"], return_numpy=False)
    np.testing.assert_array_equal(rows.values, [[1, 2], [3, np.inf]])
    assert np.asarray(found).tolist() == [True]
