"""Precision, recall and the area under the ROC curve."""

import numpy as np
import pytest

from fleet_mpi import metrics
from fleet_mpi.errors import UsageError

SCORES = np.array([[0.9], [0.7], [0.6], [0.4], [0.2]], np.float32)
LABELS = np.array([[1], [0], [1], [1], [0]])


def test_precision_and_recall_count_rounded_scores():
    precision, recall = metrics.Precision(), metrics.Recall()
    assert precision.eval() == recall.eval() == 0.0
    precision.update(SCORES, LABELS)
    recall.update(SCORES, LABELS)
    assert precision.eval() == pytest.approx(2 / 3) and recall.eval() == pytest.approx(2 / 3)
    with pytest.raises(UsageError, match="as many labels as scores, got 4 and 5"):
        precision.update(SCORES, LABELS[:4])


@pytest.mark.parametrize("columns", [SCORES, np.hstack([1 - SCORES, SCORES])])
def test_auc_is_the_share_of_pairs_in_order(columns):
    metric = metrics.Auc("ROC")
    assert metric.eval() == 0
    metric.update(columns[:2], LABELS[:2])
    metric.update(columns[2:], LABELS[2:])
    assert metric.eval() == pytest.approx(4 / 6)
    metric.reset()
    assert metric.eval() == 0


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(UsageError, match="got .*1.5.* in row 1"):
        metrics.Auc().update(np.array([[0.5], [1.5]]), np.array([0, 1]))
    with pytest.raises(UsageError, match="'ROC'"):
        metrics.Auc(curve="PR")
