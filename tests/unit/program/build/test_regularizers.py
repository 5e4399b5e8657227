"""fleet_mpi/program/build/regularizers.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.program.build.regularizers import (
    L1Decay,
    L1DecayRegularizer,
    L2Decay,
    L2DecayRegularizer,
    append_regularization_ops,
)
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import Role, VarType
from tests.unit.program.building import data, parameter

W = np.array([[1.0, -2.0], [0.0, 4.0]], "float32")
G = np.array([[1.0, 1.0], [1.0, 1.0]], "float32")


def regularized(regularizer, own=None):
    param = parameter("w", W)
    param.regularizer = own
    (_, grad), = append_regularization_ops([(param, data("w@GRAD", [2, 2]))], regularizer)
    return grad


@pytest.mark.parametrize("regularizer, want, ops", [
    (L2Decay(0.5), G + 0.5 * W, ["scale", "sum"]),
    (L1Decay(0.5), G + 0.5 * np.sign(W), ["sign", "scale", "sum"]),
])
def test_the_decay_is_added_to_the_gradient(regularizer, want, ops):
    grad = regularized(regularizer)
    assert [op.type for op in default_main_program().global_block().ops] == ops
    found, raw = Executor().run(feed={"w@GRAD": G}, fetch_list=[grad, "w@GRAD"])
    np.testing.assert_allclose(found, want)
    np.testing.assert_array_equal(raw, G)


def test_ops_are_the_optimizers_and_name_the_pair():
    regularized(L1Decay(0.5))
    for op in default_main_program().global_block().ops:
        assert op.attrs["op_role"] == int(Role.Optimize)
        assert op.attrs["op_role_var"] == ["w", "w@GRAD"]


def test_the_parameters_own_regularizer_wins():
    grad = regularized(L2Decay(0.5), own=L1Decay(2.0))
    np.testing.assert_allclose(Executor().run(feed={"w@GRAD": G}, fetch_list=[grad])[0], G + 2 * np.sign(W))


def test_without_a_regularizer_the_gradient_stays():
    assert regularized(None).name == "w@GRAD"


def test_every_row_decays_also_of_a_row_gradient():
    param = parameter("w", W)
    rows = default_main_program().global_block().create_var(name="g", shape=[2, 2], type=VarType.SELECTED_ROWS)
    global_scope().var("g").value = Rows(np.array([1, 1]), G, 2)
    (_, grad), = append_regularization_ops([(param, rows)], L2Decay(0.5))
    assert grad.type == VarType.LOD_TENSOR
    np.testing.assert_allclose(Executor().run(fetch_list=[grad])[0], 0.5 * W + [[0, 0], [2, 2]])


def test_a_regularizer_called_gives_the_term_alone():
    param, grad = parameter("w", W), data("w@GRAD", [2, 2])
    term = L2Decay(0.5)(param, grad, default_main_program().global_block())
    np.testing.assert_allclose(Executor().run(fetch_list=[term])[0], 0.5 * W)


def test_both_spellings_are_one_class():
    assert (L1DecayRegularizer, L2DecayRegularizer) == (L1Decay, L2Decay)
    assert repr(L2Decay(0.5)) == "L2Decay(0.5)"
