"""Samplers: the order in which a map-style dataset is read, and how it is cut into batches.

The numbers of a pass are drawn when it begins (``iter``), in the thread that asks, whoever loads the samples.
"""

import itertools

import numpy as np

from fleet_mpi.data.seeding import generator_of_pass
from fleet_mpi.errors import UsageError


class Sampler:
    """Gives sample numbers: a subclass has ``__iter__``."""

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}.__iter__: override it to yield the numbers of the samples")

    def __len__(self):
        return len(self.data_source)


class SequenceSampler(Sampler):
    """0, 1, 2, and so on."""

    def __iter__(self):
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    """All numbers in random order, or ``num_samples`` of them; see ``seeding`` for where the randomness comes from."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        super().__init__(data_source)
        self.replacement, self._num_samples, self.generator = replacement, num_samples, generator
        self._passes = itertools.count()
        if num_samples is not None:
            whole_number("RandomSampler", "num_samples", num_samples)
        if not replacement and generator is None and self.num_samples > len(data_source):
            raise UsageError(f"RandomSampler: num_samples is {num_samples} of {len(data_source)} samples; more than "
                             f"all needs replacement=True")

    @property
    def num_samples(self):
        """How many numbers a pass has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        if self.generator is not None:
            return itertools.islice(iter(self.generator), self.num_samples)
        drawn = generator_of_pass(next(self._passes))
        return iter(drawn.choice(len(self.data_source), self.num_samples, replace=self.replacement).tolist())

    def __len__(self):
        return self.num_samples


class WeightedRandomSampler(Sampler):
    """``num_samples`` numbers, each as likely as its weight says."""

    def __init__(self, weights, num_samples, replacement=True):
        super().__init__()
        self.weights = np.asarray(weights, "float64")
        self.num_samples = whole_number("WeightedRandomSampler", "num_samples", num_samples)
        self.replacement = replacement
        self._passes = itertools.count()
        if self.weights.ndim != 1 or (self.weights < 0).any() or self.weights.sum() == 0:
            raise UsageError("WeightedRandomSampler: expected a list of weights from 0 up, at least one above 0")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise UsageError(f"WeightedRandomSampler: num_samples is {num_samples}, but only "
                             f"{np.count_nonzero(self.weights)} samples have a weight; more needs replacement=True")

    def __iter__(self):
        drawn = generator_of_pass(next(self._passes))
        return iter(drawn.choice(len(self.weights), self.num_samples, replace=self.replacement,
                                 p=self.weights / self.weights.sum()).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` numbers, of a dataset (in order or shuffled) or of another sampler."""

    def __init__(self, dataset=None, sampler=None, shuffle=False, batch_size=1, drop_last=False):
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise UsageError("BatchSampler: expected either dataset or sampler")
        self.sampler = sampler or (RandomSampler(dataset) if shuffle else SequenceSampler(dataset))
        self.batch_size = whole_number("BatchSampler", "batch_size", batch_size)
        self.shuffle, self.drop_last = shuffle, drop_last

    def __iter__(self):
        return cut(iter(self.sampler), self.batch_size, self.drop_last)

    def __len__(self):
        return batch_count(len(self.sampler), self.batch_size, self.drop_last)


def cut(numbers, batch_size, drop_last):
    """Yield lists of ``batch_size`` numbers; the last one may be shorter unless dropped."""
    while batch := list(itertools.islice(numbers, batch_size)):
        if len(batch) == batch_size or not drop_last:
            yield batch


def batch_count(samples, batch_size, drop_last):
    """How many batches so many samples make."""
    return samples // batch_size if drop_last else -(-samples // batch_size)


def whole_number(who, what, value, least=1):
    """The value, if it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise UsageError(f"{who}: {what} is a whole number of at least {least}, got {value!r}")
    return int(value)
