"""Layers of program/layers/embedding_loss.py: values against the formula, and what training does with them."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import embedding_loss as layers
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.layers.tensor import fill_constant
from fleet_mpi.program.optimizers.plain import SGD

rng = np.random.default_rng(0)


def run(feed, *fetches):
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    return executor.run(feed=feed, fetch_list=list(fetches), scope=scope), scope


def test_centers_follow_their_rows():
    x, label = data("x", [2]), data("label", [1], dtype="int64")
    loss = layers.center_loss(x, label, 3, 0.5, ParamAttr(name="centers", initializer=Constant(0.0)))
    SGD(0.1).minimize(mean(fc(x, 1) + loss))
    rows = np.array([[2, 0], [4, 2], [1, 1]], "float32")
    (found,), scope = run({"x": rows, "label": np.array([[0], [0], [2]])}, loss)
    assert found.tolist() == [[2], [10], [1]]
    np.testing.assert_allclose(scope.array("centers"), [[1, 1 / 3], [0, 0], [0.25, 0.25]], rtol=1e-6)
    assert "centers@GRAD" not in default_main_program().global_block().vars


def test_rows_that_do_not_fit_the_centers_are_refused_by_a_run_not_by_the_declaration():
    loss = layers.center_loss(data("x", [2, 3]), data("label", [2, 1], dtype="int64"), 3, 0.5, "centers")
    with pytest.raises(ProgramError, match=r"expected Centers \[3, 2, 3\], got \[3, 2\]"):
        run({"x": np.ones((1, 2, 3), "float32"), "label": np.zeros((1, 2, 1), "int64")}, loss)


def test_centers_stay_where_they_are_told_to_and_the_rate_may_be_a_variable():
    x, label = data("x", [2]), data("label", [1], dtype="int64")
    loss = layers.center_loss(x, label, 3, fill_constant([1], "float32", 0.5), "centers", update_center=False)
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    before = scope.array("centers").copy()
    executor.run(feed={"x": np.ones((1, 2), "float32"), "label": np.array([[1]])}, fetch_list=[loss], scope=scope)
    np.testing.assert_array_equal(scope.array("centers"), before)


def test_npair_loss_is_the_formula():
    anchor, positive = (rng.normal(size=(4, 3)).astype("float32") for _ in range(2))
    labels = np.array([0, 1, 0, 2])
    loss = layers.npair_loss(data("a", [3]), data("p", [3]), data("labels", [], dtype="int64"), l2_reg=0.1)
    (found,), _ = run({"a": anchor, "p": positive, "labels": labels}, loss)
    shares = (labels[:, None] == labels).astype(float)
    shares /= shares.sum(1, keepdims=True)
    similar = anchor @ positive.T
    logs = similar - np.log(np.exp(similar).sum(1, keepdims=True))
    entropy = -(shares * logs).sum(1, keepdims=True)
    lengths = (anchor ** 2).sum(1).mean() + (positive ** 2).sum(1).mean()
    np.testing.assert_allclose(found.item(), lengths * 0.25 * 0.1 + (shares * entropy).sum(0).mean(), rtol=1e-5)


def test_a_student_is_told_of_clicks_and_scores():
    loss = layers.teacher_student_sigmoid_loss(data("x", [1]), data("label", [1]))
    x = np.zeros((3, 1), "float32")
    (found,), _ = run({"x": x, "label": np.array([[-2], [-1], [0.5]], "float32")}, loss)
    np.testing.assert_allclose(found, np.log(2) * np.array([[1], [1], [2]]), rtol=1e-6)
