"""Metrics that add up counts."""

import numpy as np
import pytest

from fleet_mpi import metrics
from fleet_mpi.errors import UsageError


def test_accuracy_is_the_mean_weighted_by_batch_size():
    metric = metrics.Accuracy()
    metric.update(value=np.array([0.5], np.float32), weight=np.array([30]))
    metric.update(value=1.0, weight=10)
    assert metric.eval() == pytest.approx(0.625) and "%.3f" % metric.eval() == "0.625"
    assert metric.value == pytest.approx(25) and metric.weight == 40
    metric.reset()
    assert metric.value == 0 and metric.weight == 0


def test_an_empty_accuracy_and_senseless_updates_are_sentences():
    metric = metrics.Accuracy(name="top1")
    with pytest.raises(UsageError, match="top1.eval: nothing was added"):
        metric.eval()
    with pytest.raises(UsageError, match="weight from 0 up"):
        metric.update(0.5, -1)
    with pytest.raises(UsageError, match="one number"):
        metric.update(np.array([0.5, 0.6]), 1)


def test_a_composite_updates_resets_and_evaluates_its_parts_in_order():
    metric = metrics.CompositeMetric()
    metric.add_metric(metrics.Precision())
    metric.add_metric(metrics.Recall())
    for _ in range(2):
        metric.update(np.array([[0.9], [0.8], [0.1], [0.2]]), np.array([[1], [0], [1], [1]]))
        assert metric.eval() == [0.5, pytest.approx(1 / 3)]
        metric.reset()
    with pytest.raises(UsageError, match="expected a metric"):
        metric.add_metric("accuracy")


def test_chunks_give_precision_recall_and_f1():
    metric = metrics.ChunkEvaluator()
    assert metric.eval() == (0, 0, 0)
    metric.update(np.array([6]), 5, 3)
    metric.update(4, 3, 3)
    assert metric.eval() == pytest.approx((0.6, 0.75, 2 * 0.6 * 0.75 / 1.35))


def test_edit_distances_are_averaged_and_faulty_sequences_counted():
    metric = metrics.EditDistance()
    metric.update(np.array([[0.0], [2.0]]), 2)
    metric.update(np.array([[1.0], [0.0]]), np.array([2]))
    assert metric.eval() == (0.75, 0.5)
    metric.reset()
    with pytest.raises(UsageError, match="nothing was added"):
        metric.eval()


def test_a_metric_of_ones_own_resets_by_its_attributes():
    class Worst(metrics.MetricBase):
        def __init__(self):
            super().__init__()
            self.worst, self.seen = 0.0, np.zeros(2)

    metric = Worst()
    metric.worst, metric.seen[1] = 3.5, 1
    assert metric.get_config()["states"]["worst"] == 3.5
    metric.reset()
    assert metric.worst == 0 and not metric.seen.any()
