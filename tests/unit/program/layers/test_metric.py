"""Layers of program/layers/metric.py: the state as the original keeps it."""

import numpy as np
import pytest

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import metric
from fleet_mpi.program.layers.data import data

rng = np.random.default_rng(0)


def batches(count, columns, rows=16):
    return [{"p": rng.uniform(0, 1, (rows, columns)).astype(np.float32), "label": rng.integers(0, 2, (rows, 1))}
            for _ in range(count)]


def area(parts):
    """All pairs compared after rounding to the bins."""
    scores = np.concatenate([(part["p"][:, -1] * np.float32(15)).astype(int) for part in parts])
    labels = np.concatenate([part["label"][:, 0] for part in parts])
    ahead = scores[labels > 0][:, None] - scores[labels == 0]
    return (ahead > 0).mean() + (ahead == 0).mean() / 2


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("steps", [1, 3])
def test_auc_over_all_steps_and_over_the_last(columns, steps):
    p, label = data("p", [columns]), data("label", [1], dtype="int64")
    whole, last, states = metric.auc(p, label, num_thresholds=15, slide_steps=steps)
    assert [tuple(state.shape) for state in states] == [((steps + 1) * 16 + 1,)] * 2 + [(1, 16)] * 2
    assert [state.name for state in states] == [f"_generated_var_{i}" for i in range(4)]
    executor = Executor()
    executor.run(default_startup_program())
    told = batches(5, columns)
    for i, feed in enumerate(told):
        one, other = executor.run(feed=feed, fetch_list=[whole, last])
        assert one.dtype == np.float64 and one.shape == (1,)
        assert one[0] == pytest.approx(area(told[:i + 1]), rel=1e-12)
        assert other[0] == pytest.approx(area(told[max(0, i + 1 - steps):i + 1]), rel=1e-12)
    positives = np.array(global_scope().find_var("_generated_var_2").get_tensor())
    assert positives.dtype == np.int64 and positives.sum() == sum((feed["label"] > 0).sum() for feed in told)


def test_the_state_can_be_set_to_zero_through_the_scope():
    p, label = data("p", [2]), data("label", [1], dtype="int64")
    whole, _, states = metric.auc(p, label, num_thresholds=15, slide_steps=2)
    executor = Executor()
    executor.run(default_startup_program())
    told = batches(2, 2)
    executor.run(feed=told[0], fetch_list=[whole])
    for state in states:
        tensor = global_scope().find_var(state.name).get_tensor()
        tensor.set(np.zeros(tensor._get_dims(), np.int64))
    assert executor.run(feed=told[1], fetch_list=[whole])[0][0] == pytest.approx(area(told[1:]), rel=1e-12)


@pytest.mark.parametrize("k", [1, 2])
def test_accuracy_of_the_best_classes(k):
    p, label = data("p", [4]), data("label", [1], dtype="int64")
    total = default_main_program().global_block().create_var(name="total", dtype="int64")
    share = metric.accuracy(p, label, k=k, total=total)
    feed = {"p": rng.uniform(size=(50, 4)).astype(np.float32), "label": rng.integers(0, 4, (50, 1))}
    best = np.argsort(-feed["p"], axis=1)[:, :k]
    one, other = Executor().run(feed=feed, fetch_list=[share, total])
    assert one.dtype == np.float32 and one.shape == (1,)
    assert one[0] == pytest.approx((best == feed["label"]).any(1).mean()) and other[0] == 50


def test_accuracy_of_a_single_column_is_the_share_of_label_0():
    p, label = data("p", [1]), data("label", [1], dtype="int64")
    feed = batches(1, 1)[0]
    share = Executor().run(feed=feed, fetch_list=[metric.accuracy(p, label)])[0]
    assert share[0] == pytest.approx((feed["label"] == 0).mean())


def test_mean_iou_gives_the_mean_and_counts_by_class():
    found = metric.mean_iou(data("guess", [3], dtype="int64"), data("label", [3], dtype="int64"), 3)
    mean, wrong, correct = Executor().run(feed={"guess": np.array([[0, 1, 1]]), "label": np.array([[0, 1, 2]])},
                                          fetch_list=list(found))
    assert wrong.tolist() == [0, 1, 1] and correct.tolist() == [1, 1, 0]
    assert mean.item() == pytest.approx((1 + 0.5 + 0) / 3)
