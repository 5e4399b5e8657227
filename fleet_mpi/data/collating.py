"""From the samples of a batch to arrays: what a ``DataLoader`` does unless the script gives its own function."""

from collections.abc import Mapping, Sequence
from numbers import Number

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import Tensor


def default_collate_fn(batch):
    """Samples as arrays with one more dimension in front; tuples and dictionaries are put together field by field."""
    first = batch[0]
    if isinstance(first, (np.ndarray, Tensor)):
        return _stacked([np.asarray(one) for one in batch])
    if isinstance(first, Number):
        return np.array(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate_fn([one[key] for one in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(one) != len(first) for one in batch):
            raise UsageError(f"DataLoader: samples of one batch have {sorted({len(one) for one in batch})} fields; "
                             f"expected the same number in each")
        return [default_collate_fn(fields) for fields in zip(*batch)]
    raise UsageError(f"DataLoader: a field of a sample is {type(first).__name__}; expected an array, a number, a text, "
                     f"or a list, tuple or dictionary of them, or give collate_fn")


def default_convert_fn(sample):
    """One sample as it is, its numbers as arrays: for loaders without batches."""
    if isinstance(sample, (np.ndarray, str, bytes)):
        return sample
    if isinstance(sample, Mapping):
        return {key: default_convert_fn(value) for key, value in sample.items()}
    if isinstance(sample, Sequence):
        return [default_convert_fn(one) for one in sample]
    return np.asarray(sample)


def flat_fields(batch):
    """The fields of a batch in order, whatever lists and dictionaries they lie in."""
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if not isinstance(batch, (list, tuple)):
        return [batch]
    return [field for one in batch for field in flat_fields(one)]


def _stacked(samples):
    try:
        return np.stack(samples)
    except ValueError:
        raise UsageError(f"DataLoader: samples of one batch have the shapes {sorted({one.shape for one in samples})}; "
                         f"expected the same shape in each: pad them, or give collate_fn") from None
