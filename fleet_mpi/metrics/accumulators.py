"""The base of all metrics, and those that add up what ops have already counted."""

import numpy as np

from fleet_mpi.errors import UsageError


class MetricBase:
    """Something to ``update`` with every batch and to ``eval`` at any time; ``reset`` starts anew.

    The state is what public attributes hold, set first in ``__init__``.
    """

    def __init__(self, name=None):
        self._name = str(name) if name is not None else type(self).__name__

    def __str__(self):
        return self._name

    def reset(self):
        """Set every number of the state to zero."""
        for attribute, value in self._state().items():
            if isinstance(value, (int, float)):
                setattr(self, attribute, type(value)(0))
            elif isinstance(value, np.ndarray):
                value.fill(0)
            else:
                setattr(self, attribute, None)

    def get_config(self):
        """The name and the state, as a dictionary."""
        return {"name": self._name, "states": self._state()}

    def update(self, preds, labels):
        """Take in one batch."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def eval(self):
        """The metric over all batches since the last reset."""
        raise NotImplementedError(f"{type(self).__name__} has no eval")

    def _state(self):
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def one_number(given, what):
    """A Python number from a number or an array of one element."""
    array = np.asarray(given)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise UsageError(f"{what}: expected one number, got {given!r}")
    return array.reshape(-1)[0].item()


class Accuracy(MetricBase):
    """The mean of accuracies, each weighted (by its batch size): ``value`` over ``weight``."""

    def __init__(self, name=None):
        super().__init__(name)
        self.value = 0.0
        self.weight = 0.0

    def update(self, value, weight):
        """Add the accuracy of a batch and how much it counts."""
        weight = one_number(weight, f"{self}.update: weight")
        if weight < 0:
            raise UsageError(f"{self}.update: expected a weight from 0 up, got {weight!r}")
        self.value += one_number(value, f"{self}.update: value") * weight
        self.weight += weight

    def eval(self):
        """The weighted mean."""
        if self.weight == 0:
            raise UsageError(f"{self}.eval: nothing was added yet; call update(value, weight) with what "
                             f"layers.accuracy gave")
        return self.value / self.weight


class CompositeMetric(MetricBase):
    """Several metrics that see the same batches."""

    def __init__(self, name=None):
        super().__init__(name)
        self._metrics = []

    def add_metric(self, metric):
        """Add a metric to those that are updated."""
        if not isinstance(metric, MetricBase):
            raise UsageError(f"{self}.add_metric: expected a metric, got {type(metric).__name__}")
        self._metrics.append(metric)

    def reset(self):
        """Reset each."""
        for metric in self._metrics:
            metric.reset()

    def update(self, preds, labels):
        """Update each with the same batch."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self):
        """Their values in the order they were added."""
        return [metric.eval() for metric in self._metrics]


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from the counts of layers.chunk_eval."""

    def __init__(self, name=None):
        super().__init__(name)
        self.num_infer_chunks = 0
        self.num_label_chunks = 0
        self.num_correct_chunks = 0

    def update(self, num_infer_chunks, num_label_chunks, num_correct_chunks):
        """Add the counts of a batch."""
        self.num_infer_chunks += one_number(num_infer_chunks, f"{self}.update: num_infer_chunks")
        self.num_label_chunks += one_number(num_label_chunks, f"{self}.update: num_label_chunks")
        self.num_correct_chunks += one_number(num_correct_chunks, f"{self}.update: num_correct_chunks")

    def eval(self):
        """(precision, recall, F1); 0 where there is nothing to divide by."""
        precision = _share(self.num_correct_chunks, self.num_infer_chunks)
        recall = _share(self.num_correct_chunks, self.num_label_chunks)
        return precision, recall, _share(2 * precision * recall, precision + recall)


class EditDistance(MetricBase):
    """The mean edit distance, and the share of sequences with any error, from layers.edit_distance."""

    def __init__(self, name=None):
        super().__init__(name)
        self.total_distance = 0.0
        self.seq_num = 0
        self.instance_error = 0

    def update(self, distances, seq_num):
        """Add the distances of a batch of sequences."""
        distances, count = np.asarray(distances), int(one_number(seq_num, f"{self}.update: seq_num"))
        self.total_distance += float(distances.sum())
        self.seq_num += count
        self.instance_error += count - int((distances == 0).sum())

    def eval(self):
        """(mean distance, share of sequences with an error)."""
        if self.seq_num == 0:
            raise UsageError(f"{self}.eval: nothing was added yet; call update(distances, seq_num)")
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


def _share(part, whole):
    return part / whole if whole else 0.0
