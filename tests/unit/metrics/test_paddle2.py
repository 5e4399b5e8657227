"""Metrics of 2.x: their members, by hand, and the accuracy of variables in a program."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.metrics import paddle2
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers.data import static_data

PRED = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.4, 0.3, 0.2], [0.1, 0.2, 0.4, 0.3], [0.4, 0.2, 0.3, 0.1]], np.float32)
LABEL = np.array([[3], [2], [0], [0]])


def test_accuracy_of_the_best():
    metric = paddle2.Accuracy()
    assert metric.accumulate() == 0 and metric.name() == ["acc"]
    correct = metric.compute(PRED, LABEL)
    assert correct.dtype == np.float32 and correct.tolist() == [[1], [0], [0], [1]]
    assert metric.update(correct) == 0.5
    assert metric.update(metric.compute(PRED[:1], LABEL[:1])) == 1.0
    assert metric.accumulate() == 3 / 5 and (metric.total, metric.count) == ([3.0], [5])
    metric.reset()
    assert metric.accumulate() == 0 and metric.count == [0]


def test_accuracy_of_several():
    metric = paddle2.Accuracy(topk=(1, 2), name="my")
    assert metric.name() == ["my_top1", "my_top2"] and metric.maxk == 2
    assert metric.update(metric.compute(PRED, LABEL)) == [0.5, 0.75] and metric.accumulate() == [0.5, 0.75]
    assert paddle2.Accuracy(topk=5).name() == ["acc_top5"]


@pytest.mark.parametrize("label", [LABEL, LABEL.ravel(), np.eye(4, dtype=np.int64)[LABEL.ravel()]])
@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_accuracy_of_variables_is_that_of_arrays(label, k):
    metric = paddle2.Accuracy(topk=(k,))
    pred = static_data("pred", [None, 4])
    given = static_data("label", [None, *label.shape[1:]], "int64")
    found, = Executor().run(feed={"pred": PRED, "label": label}, fetch_list=[metric.compute(pred, given)])
    want = metric.compute(PRED, label)
    assert found.dtype == np.float32 and found.shape == (4, min(k, 4)) and (found == want).all()
    assert metric.update(found) == paddle2.Accuracy(topk=(k,)).update(want)


def test_labels_of_another_dtype():
    pred, label = static_data("pred", [None, 4]), static_data("label", [None, 1], "int32")
    found, = Executor().run(feed={"pred": PRED, "label": LABEL.astype("int32")},
                            fetch_list=[paddle2.Accuracy().compute(pred, label)])
    assert found.ravel().tolist() == [1, 0, 0, 1]


def test_precision_and_recall():
    precision, recall = paddle2.Precision(), paddle2.Recall()
    assert (precision.name(), recall.name()) == ("precision",
                                                 "recall") and precision.accumulate() == recall.accumulate() == 0
    scores, labels = np.array([0.1, 0.5, 0.6, 0.7]), np.array([0, 1, 1, 1])
    precision.update(scores, labels)
    assert precision.accumulate() == 1.0 and (precision.tp, precision.fp) == (3, 0)
    precision.update(np.array([[0.9]]), np.array([[0]]))
    assert precision.accumulate() == 3 / 4
    recall.update(scores, np.array([1, 0, 1, 1]))
    assert recall.accumulate() == pytest.approx(2 / 3) and (recall.tp, recall.fn) == (2, 1)
    for metric in (precision, recall):
        metric.reset()
        assert metric.accumulate() == 0
    with pytest.raises(UsageError, match="Recall.update: expected as many labels as scores, got 3 and 4"):
        recall.update(scores, labels[:3])


def test_area_under_the_curve():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (200, 1))
    scores = np.clip(rng.random((200, 1)) * 0.6 + 0.3 * labels, 0, 1)
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None]
    metric = paddle2.Auc(name="mine")
    metric.update(preds=np.hstack([1 - scores, scores])[:90], labels=labels[:90])
    metric.update(np.hstack([1 - scores, scores])[90:], labels[90:])
    assert metric.name() == "mine" and metric.accumulate() == pytest.approx((pairs > 0).mean(), abs=1e-3)
    metric.reset()
    assert metric.accumulate() == 0
    with pytest.raises(UsageError, match=r"Auc.update: expected scores in \[0, 1\], got .*2.0.* in row 0"):
        metric.update(np.array([[0.0, 2.0]]), np.array([[1]]))
    with pytest.raises(UsageError, match="only the curve 'ROC'"):
        paddle2.Auc(curve="PR")


@pytest.mark.parametrize("call", [
    lambda var: paddle2.Accuracy().update(var), lambda var: paddle2.Auc().update(PRED, var),
    lambda var: paddle2.Precision().update(var, LABEL), lambda var: paddle2.Recall().update(PRED, var)])
def test_variables_are_to_be_fetched_first(call):
    with pytest.raises(UsageError,
                       match="update: expected values, got the variable 'x': give it to the Executor as a fetch"):
        call(static_data("x", [None, 1]))


def test_a_metric_of_the_script():
    class Mean(paddle2.Metric):
        def __init__(self):
            super().__init__()
            self.reset()

        def reset(self):
            self.seen = []

        def update(self, value):
            self.seen.append(value)

        def accumulate(self):
            return sum(self.seen) / len(self.seen)

        def name(self):
            return "mean"

    metric = Mean()
    metric.update(*metric.compute(3.0))
    metric.update(5.0)
    assert metric.accumulate() == 4.0 and metric.name() == "mean"
    with pytest.raises(TypeError, match="abstract"):
        paddle2.Metric()
