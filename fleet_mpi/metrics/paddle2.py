"""The metrics of 2.x (``paddle.metric``): ``compute`` adds ops to a program, ``update`` takes what the script fetched.

Beside those of 1.x in this folder, which are evaluated by ``eval``; here it is ``accumulate``.
"""

import abc

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference.metric import add_to_histograms
from fleet_mpi.metrics.binary import area, share
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers import comparison, functional_tensor, manipulation, math


class Metric(abc.ABC):
    """Base of all: a subclass has ``reset``, ``update``, ``accumulate`` and ``name``, and may have ``compute``."""

    @abc.abstractmethod
    def reset(self):
        """Forget all batches."""

    @abc.abstractmethod
    def update(self, *args):
        """Take in one batch: what ``compute`` gave, as arrays."""

    @abc.abstractmethod
    def accumulate(self):
        """The metric over all batches since ``reset``."""

    @abc.abstractmethod
    def name(self):
        """The name, or the names where there are several values."""

    def compute(self, *args):
        """What ``update`` is to get, from the outputs of a model and the labels; by default these themselves."""
        return args


class Accuracy(Metric):
    """The share of samples whose label is among the k best, for each k of ``topk``."""

    def __init__(self, topk=(1,), name=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.topk = (topk,) if isinstance(topk, int) else tuple(topk)
        self.maxk = max(self.topk)
        name = name or "acc"
        self._name = [name] if self.maxk == 1 else [f"{name}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred, label, *args):
        """Whether each of the best guesses is the label: float32 [batch, max(topk)], best first.

        Of variables another variable, to be fetched and given to ``update``; of arrays an array. Labels are numbers
        [batch] or [batch, 1], or one-hot rows.
        """
        return (_hits_in_program if isinstance(pred, Variable) else _hits)(pred, label, self.maxk)

    def update(self, correct, *args):
        """Count a batch by what ``compute`` gave; returns this batch's share, for several k a list."""
        correct = _fetched(correct, "Accuracy")
        samples = int(np.prod(correct.shape[:-1]))
        hits = [float(correct[..., :k].sum()) for k in self.topk]
        self.total = [before + more for before, more in zip(self.total, hits)]
        self.count = [before + samples for before in self.count]
        return self._one_or_all([hit / samples if samples else 0.0 for hit in hits])

    def reset(self):
        """Forget all batches."""
        self.total, self.count = [0.0] * len(self.topk), [0] * len(self.topk)

    def accumulate(self):
        """The share so far, for several k a list; 0 before the first batch."""
        return self._one_or_all([share(total, count - total) for total, count in zip(self.total, self.count)])

    def name(self):
        """A list of one name, or of one for each k: ``acc_top1``, ``acc_top5``."""
        return self._name

    def _one_or_all(self, values):
        return values[0] if len(self.topk) == 1 else values


class Precision(Metric):
    """How many of the scores from 0.5 up have the label 1."""

    def __init__(self, name="precision", *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._name = name
        self.reset()

    def update(self, preds, labels):
        """Count a batch of scores in [0, 1] and labels 0 or 1."""
        said, true = _column(preds, labels, "Precision")
        said = np.floor(said + 0.5).astype(np.int32) == 1
        self.tp += int((said & (true == 1)).sum())
        self.fp += int((said & (true != 1)).sum())

    def reset(self):
        """Forget all batches."""
        self.tp = self.fp = 0

    def accumulate(self):
        """True positives among all positives said; 0 if none was said."""
        return share(self.tp, self.fp)

    def name(self):
        """The name."""
        return self._name


class Recall(Metric):
    """How many of the labels 1 have a score that rounds to 1; 0.5 rounds to 0, as in the original."""

    def __init__(self, name="recall", *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._name = name
        self.reset()

    def update(self, preds, labels):
        """Count a batch of scores in [0, 1] and labels 0 or 1."""
        said, true = _column(preds, labels, "Recall")
        said, true = np.rint(said).astype(np.int32) == 1, true == 1
        self.tp += int((said & true).sum())
        self.fn += int((~said & true).sum())

    def reset(self):
        """Forget all batches."""
        self.tp = self.fn = 0

    def accumulate(self):
        """True positives among all true; 0 if there is none."""
        return share(self.tp, self.fn)

    def name(self):
        """The name."""
        return self._name


class Auc(Metric):
    """The area under the ROC curve by histograms over the scores of class 1."""

    def __init__(self, curve="ROC", num_thresholds=4095, name="auc", *args, **kwargs):
        super().__init__(*args, **kwargs)
        if curve != "ROC":
            raise UsageError(f"paddle.metric.Auc: only the curve 'ROC' is computed (as in the original), got {curve!r}")
        self._curve, self._num_thresholds, self._name = curve, num_thresholds, name
        self.reset()

    def update(self, preds, labels):
        """Count a batch: probabilities [batch, 2] of the classes 0 and 1 (or [batch, 1] of 1), and labels 0 or 1."""
        preds, labels = _fetched(preds, "Auc"), _fetched(labels, "Auc").reshape(-1)
        scores = np.ascontiguousarray(preds.reshape(len(preds), -1)[:, -1])
        bad = add_to_histograms(scores, labels, self._stat_pos, self._stat_neg)
        if bad >= 0:
            raise UsageError(f"paddle.metric.Auc.update: expected scores in [0, 1], got {scores[bad]!r} in row {bad}")

    def reset(self):
        """Empty the histograms."""
        self._stat_pos, self._stat_neg = np.zeros((2, self._num_thresholds + 1), np.int64)

    def accumulate(self):
        """The area so far; 0 while one of the two labels is missing."""
        return area(self._stat_pos, self._stat_neg)

    def name(self):
        """The name."""
        return self._name


def _hits_in_program(pred, label, k):
    """As ``_hits``, of variables."""
    classes = pred.shape[-1]
    _, best = manipulation.topk_along(pred, min(k, classes) if classes > 0 else k)
    if len(label.shape) == 1 or (len(label.shape) == 2 and label.shape[-1] == 1):
        label = manipulation.reshape(label, [-1, 1])
    elif label.shape[-1] != 1:
        label = functional_tensor.argmax(label, axis=-1, keepdim=True)
    label = label if label.dtype == best.dtype else math.cast(label, best.dtype)
    return math.cast(comparison.equal(best, label), "float32")


def _hits(pred, label, k):
    """float32: whether each of the k best classes is the label, best first; of equal ones the first is better."""
    pred, label = np.asarray(pred), np.asarray(label)
    best = np.argsort(-pred, axis=-1, kind="stable")[..., :k]
    if label.ndim == 1 or (label.ndim == 2 and label.shape[-1] == 1):
        label = label.reshape(-1, 1)
    elif label.shape[-1] != 1:
        label = label.argmax(axis=-1)[..., None]
    return (best == label).astype(np.float32)


def _fetched(given, who):
    """An array of values; a variable of the program has none yet."""
    if isinstance(given, Variable):
        raise UsageError(f"paddle.metric.{who}.update: expected values, got the variable {given.name!r}: give it to "
                         f"the Executor as a fetch, and update with what that returns")
    return np.asarray(given)


def _column(preds, labels, who):
    said, true = (_fetched(given, who).reshape(-1) for given in (preds, labels))
    if said.shape != true.shape:
        raise UsageError(f"paddle.metric.{who}.update: expected as many labels as scores, got {true.size} and "
                         f"{said.size}")
    return said, true
