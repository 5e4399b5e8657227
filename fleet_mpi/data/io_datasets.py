"""Datasets of 2.x: samples by number (``Dataset``) or as a stream (``IterableDataset``), and what is made of them.

Knows nothing of batches. A script derives its own from one of the first two.
"""

import bisect
import itertools

import numpy as np

from fleet_mpi.data.seeding import generator_of_pass
from fleet_mpi.errors import UsageError

_splits = itertools.count()


class Dataset:
    """Samples by number: a subclass has ``__getitem__`` and ``__len__``."""

    def __getitem__(self, idx):
        raise NotImplementedError(f"{type(self).__name__}.__getitem__: override it to return the sample with a number")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}.__len__: override it to return the number of samples")


class IterableDataset(Dataset):
    """Samples as a stream: a subclass has ``__iter__``; in worker processes it asks ``get_worker_info`` for its
    share."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}.__iter__: override it to yield the samples")

    def __getitem__(self, idx):
        raise UsageError(f"{type(self).__name__}: an IterableDataset is read in order, not by number")

    def __len__(self):
        raise TypeError(f"{type(self).__name__}: an IterableDataset has no length")


class TensorDataset(Dataset):
    """Rows of several arrays of one length, side by side."""

    def __init__(self, tensors):
        self.tensors = [np.asarray(tensor) for tensor in tensors]
        _require_one_length("TensorDataset", self.tensors)

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return len(self.tensors[0])


class Subset(Dataset):
    """The samples of a dataset with these numbers."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx):
        return self.dataset[self.indices[idx]]

    def __len__(self):
        return len(self.indices)


class ComposeDataset(Dataset):
    """The fields of several datasets of one length, side by side."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        _require_one_length("ComposeDataset", self.datasets)

    def __getitem__(self, idx):
        samples = (dataset[idx] for dataset in self.datasets)
        return tuple(field for sample in samples
                     for field in (sample if isinstance(sample, (list, tuple)) else (sample,)))

    def __len__(self):
        return len(self.datasets[0])


class ConcatDataset(Dataset):
    """Several datasets, one behind the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __getitem__(self, idx):
        number = idx + len(self) if idx < 0 else idx
        if not 0 <= number < len(self):
            raise IndexError(f"ConcatDataset: no sample {idx} among {len(self)}")
        which = bisect.bisect_right(self.cumulative_sizes, number)
        return self.datasets[which][number - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self):
        return self.cumulative_sizes[-1] if self.datasets else 0


class ChainDataset(IterableDataset):
    """Several streams, one behind the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)


def random_split(dataset, lengths, generator=None):
    """Subsets of these lengths (or shares that add up to 1), their samples drawn at random; see ``seeding``."""
    lengths = _whole_lengths(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise UsageError(f"random_split: expected lengths that add up to the {len(dataset)} samples of the dataset, "
                         f"got {lengths}")
    order = generator_of_pass(next(_splits)).permutation(len(dataset)).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length:end]) for end, length in zip(ends, lengths)]


def _whole_lengths(lengths, count):
    """Lengths as they are; of shares the lower whole numbers, what is left going to the first ones."""
    if not any(isinstance(one, float) for one in lengths):
        return [int(one) for one in lengths]
    if abs(sum(lengths) - 1) > 1e-6:
        raise UsageError(f"random_split: expected whole lengths, or shares that add up to 1, got {list(lengths)}")
    whole = [int(share * count) for share in lengths]
    left = count - sum(whole)
    return [one + (place < left) for place, one in enumerate(whole)]


def _require_one_length(who, parts):
    if not parts or len({len(part) for part in parts}) != 1:
        raise UsageError(f"{who}: expected at least one part, all of one length, got the lengths "
                         f"{[len(part) for part in parts]}")
