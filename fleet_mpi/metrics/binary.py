"""Metrics of yes or no, from scores in [0, 1] and labels 0 or 1."""

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference.metric import add_to_histograms, area_under_roc
from fleet_mpi.metrics.accumulators import MetricBase


class Precision(MetricBase):
    """How many of the scores that round to 1 have the label 1."""

    def __init__(self, name=None):
        super().__init__(name)
        self.tp = 0
        self.fp = 0

    def update(self, preds, labels):
        """Count a batch of scores and labels."""
        said, true = _said_and_true(preds, labels, self)
        self.tp += int((said & true).sum())
        self.fp += int((said & ~true).sum())

    def eval(self):
        """True positives among all positives said; 0 if none was said."""
        return share(self.tp, self.fp)


class Recall(MetricBase):
    """How many of the labels 1 have a score that rounds to 1."""

    def __init__(self, name=None):
        super().__init__(name)
        self.tp = 0
        self.fn = 0

    def update(self, preds, labels):
        """Count a batch of scores and labels."""
        said, true = _said_and_true(preds, labels, self)
        self.tp += int((said & true).sum())
        self.fn += int((~said & true).sum())

    def eval(self):
        """True positives among all true; 0 if there is none."""
        return share(self.tp, self.fn)


class Auc(MetricBase):
    """The area under the ROC curve by histograms over the last column of the scores."""

    def __init__(self, name=None, curve="ROC", num_thresholds=4095):
        super().__init__(name)
        if curve != "ROC":
            raise UsageError(f"Auc: only the curve 'ROC' is computed (as in the original), got {curve!r}")
        self._num_thresholds = num_thresholds
        self._stat_pos = np.zeros(num_thresholds + 1, np.int64)
        self._stat_neg = np.zeros(num_thresholds + 1, np.int64)

    def reset(self):
        """Empty the histograms."""
        self._stat_pos.fill(0)
        self._stat_neg.fill(0)

    def update(self, preds, labels):
        """Count a batch: scores [rows, 1 or 2] and labels."""
        scores = np.asarray(preds)
        scores = scores.reshape(len(scores), -1)[:, -1]
        bad = add_to_histograms(scores, np.asarray(labels).reshape(-1), self._stat_pos, self._stat_neg)
        if bad >= 0:
            raise UsageError(f"{self}.update: expected scores in [0, 1], got {scores[bad]!r} in row {bad}")

    def eval(self):
        """The area; 0 while one of the two labels is missing."""
        return area(self._stat_pos, self._stat_neg)


def share(hits, misses):
    """The hits among both; 0 where there is neither."""
    return hits / (hits + misses) if hits + misses else 0.0


def area(positives, negatives):
    """The area under the ROC curve of two histograms; 0 while one of them is empty."""
    found = np.empty(1)
    area_under_roc(positives, negatives, found)
    return float(found[0])


def _said_and_true(preds, labels, metric):
    said, true = (np.asarray(given).reshape(-1) for given in (preds, labels))
    if said.shape != true.shape:
        raise UsageError(f"{metric}.update: expected as many labels as scores, got {true.size} and {said.size}")
    return np.rint(said) == 1, true == 1
