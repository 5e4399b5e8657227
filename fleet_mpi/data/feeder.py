"""DataFeeder: from lists of samples to the arrays that a program's data variables take."""

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph import lod as lods
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.variable import Variable


class DataFeeder:
    """Turns a batch of samples (tuples of fields, in the order of ``feed_list``) into a feed."""

    def __init__(self, feed_list, place=None, program=None):
        block = (program or default_main_program()).global_block()
        self.variables = [one if isinstance(one, Variable) else block.var(one) for one in feed_list]
        self.place = place

    def feed(self, iterable):
        """{name: LoDTensor}; that of a variable with LoD has the samples' lengths."""
        samples = _listed(list(iterable))
        columns = list(zip(*samples))
        if len(columns) != len(self.variables) or any(len(one) != len(columns) for one in samples):
            raise UsageError(f"DataFeeder: expected samples of {len(self.variables)} fields "
                             f"({', '.join(var.name for var in self.variables)}), got "
                             f"{sorted({len(one) for one in samples})} in a batch of {len(samples)}")
        return {var.name: column_to_value(_listed(column), var)
                for var, column in zip(self.variables, columns)}

    def feed_parallel(self, iterable, num_places=None):
        """Yield one feed per element of ``iterable`` (a batch for each place)."""
        batches = list(iterable)
        if num_places is not None and len(batches) != num_places:
            raise UsageError(f"feed_parallel: {len(batches)} batches for {num_places} places")
        return [self.feed(batch) for batch in batches]

    def decorate_reader(self, reader, multi_devices=False, num_places=None, drop_last=True):
        """A reader of feeds from a reader of batches."""
        def feeds():
            for batch in reader():
                yield [self.feed(batch)] if multi_devices else self.feed(batch)
        return feeds


def _listed(given):
    """Samples or fields, those that come as iterators (``zip``, ``map``, a generator) as lists."""
    # Asked of their types, which are few: a batch has many.
    if any(hasattr(kind, "__next__") for kind in set(map(type, given))):
        return [list(one) if hasattr(one, "__next__") else one for one in given]
    return given


def column_to_value(column, var):
    """All samples' values of one variable as a Tensor, with their lengths where the variable has LoD."""
    if var.lod_level:
        return _ragged(column, var)
    try:
        array = np.array(column, dtype=var._dtype)
    except (TypeError, ValueError) as error:
        raise UsageError(f"DataFeeder: field {var.name!r}: the samples do not make an array of "
                         f"{var._dtype} ({error})") from None
    return Tensor(array.reshape(_full_shape(var, array, len(column))))


def _full_shape(var, array, count):
    """The batch's shape: the declared one, its unknown sizes taken from the samples."""
    declared = list(var.shape)
    # What layers.data declares binds no feed (see program/engine/feeding.py): models are built for the longest
    # sentence.
    if len(declared) == array.ndim and (not var.need_check_feed or all(
            want in (-1, got) for want, got in zip(declared, array.shape))):
        return array.shape
    inner = [size for size in declared[1:]]
    known = int(np.prod([size for size in inner if size >= 0])) if inner else 1
    per_sample = array.size // count if count else 0
    if inner.count(-1) > 1 or (inner.count(-1) == 0 and known != per_sample):
        raise UsageError(f"DataFeeder: field {var.name!r}: samples of shape {array.shape[1:]} do not fit "
                         f"the declared {tuple(declared)}")
    return [count] + inner


def _ragged(column, var):
    """Nested lists flattened level by level, the lengths kept."""
    lengths, level = [], list(column)
    for _ in range(var.lod_level):
        lengths.append([len(one) for one in level])
        level = [item for one in level for item in one]
    array = np.array(level, dtype=var._dtype)
    inner = list(var.shape[1:])
    if any(size < 0 for size in inner):
        inner = list(array.shape[1:]) or [1]
    return Tensor(array.reshape([len(level)] + inner), lods.from_lengths(lengths))
