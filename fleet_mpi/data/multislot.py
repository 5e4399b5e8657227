"""The multislot text format, writing side: base classes for the program behind a pipe command.

A line is one sample: for every slot the number of its values, then the values, all between blanks.
Knows nothing of variables; ``slots`` is the reading side.
"""

import itertools
import numbers
import sys

from fleet_mpi.errors import UsageError


class DataGenerator:
    """Turns raw lines into samples; a script overrides ``generate_sample`` and calls ``run_from_stdin``.

    The two ``run`` methods write to stdout: that is what a pipe command is for.
    """

    def __init__(self):
        self._proto_info = None
        self.batch_size_ = 32

    def set_batch(self, batch_size):
        """How many samples ``generate_batch`` sees at once."""
        if not isinstance(batch_size, int) or batch_size < 1:
            raise UsageError(f"set_batch: expected a whole number of at least 1, got {batch_size!r}")
        self.batch_size_ = batch_size

    def _set_line_limit(self, line_limit):
        # Kept only, as in the original: for those who try a generator out.
        if not isinstance(line_limit, int) or line_limit < 1:
            raise UsageError(f"_set_line_limit: expected a whole number of at least 1, got {line_limit!r}")
        self._line_limit = line_limit

    def run_from_stdin(self):
        """Read raw lines from stdin, write multislot lines to stdout."""
        self._write(sample for line in sys.stdin for sample in self._samples_of(line))

    def run_from_memory(self):
        """Write what ``generate_sample(None)`` makes, to try a generator without a file."""
        self._write(self._samples_of(None))

    def generate_sample(self, line):
        """To be overridden: a callable that yields samples [(slot name, [values]), ...] of a raw line."""
        raise NotImplementedError(
            f"{type(self).__name__}.generate_sample: override it to return a function that yields "
            "[(slot name, [values]), ...]")

    def generate_batch(self, samples):
        """May be overridden: a callable that yields the samples of a batch, perhaps changed."""
        return lambda: iter(samples)

    def _samples_of(self, line):
        return (sample for sample in self.generate_sample(line)() if sample is not None)

    def _write(self, samples):
        while batch := list(itertools.islice(samples, self.batch_size_)):
            for sample in self.generate_batch(batch)():
                sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line):
        raise NotImplementedError(
            f"{type(self).__name__}: derive from MultiSlotDataGenerator or MultiSlotStringDataGenerator")

    def _as_list(self, sample):
        """The slots of a sample, which may also come as a ``zip`` object or from a generator."""
        if hasattr(sample, "__next__"):
            sample = list(sample)
        if not isinstance(sample, (list, tuple)):
            raise UsageError(f"{type(self).__name__}: a sample is a list or tuple like "
                             f"[('words', [19, 26]), ('label', [1])], got {sample!r}")
        return sample


class MultiSlotStringDataGenerator(DataGenerator):
    """For values that are texts already: they are written unchecked, which is faster."""

    def _gen_str(self, line):
        slots = ((name, list(values) if hasattr(values, "__next__") else values)
                 for name, values in self._as_list(line))
        return " ".join(" ".join((str(len(values)), *values)) for _, values in slots) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """For whole numbers and floats; every sample must have the slots of the first, in its order."""

    def _gen_str(self, line):
        line = self._as_list(line)
        names = [name for name, _ in line]
        if self._proto_info is None:
            self._begin(names)
        if names != self._names:
            raise UsageError(f"{type(self).__name__}: the first sample had the slots {self._names}, "
                             f"this one has {names}")
        return " ".join([self._slot_text(place, values) for place, (_, values) in enumerate(line)]) + "\n"

    def _begin(self, names):
        for name in names:
            if not isinstance(name, str):
                raise UsageError(f"{type(self).__name__}: a slot's name is a text, got {name!r}")
        self._names = names
        self._proto_info = [(name, "uint64") for name in names]

    def _slot_text(self, place, values):
        # One id per slot is the usual case of click data; checking it the long way halves the speed.
        if type(values) is list and len(values) == 1 and type(values[0]) is int:
            return f"1 {values[0]}"
        if hasattr(values, "__next__"):
            values = list(values)
        if not isinstance(values, (list, tuple)) or not values:
            raise UsageError(f"{type(self).__name__}: slot {self._names[place]!r} is to have a list of at least one "
                             f"value (pad it), got {values!r}")
        # Kinds instead of values: a line has few of them, and generators are what limits a dataset's speed.
        kinds = set(map(type, values))
        if kinds != {int} and not all(issubclass(kind, numbers.Integral) for kind in kinds):
            self._require_numbers(place, values, kinds)
            self._proto_info[place] = (self._names[place], "float")
        return " ".join([str(len(values)), *map(str, values)])

    def _require_numbers(self, place, values, kinds):
        if not all(issubclass(kind, numbers.Real) for kind in kinds):
            culprit = next(value for value in values if not isinstance(value, numbers.Real))
            raise UsageError(f"{type(self).__name__}: slot {self._names[place]!r}: values are whole numbers or floats, "
                             f"got {culprit!r}")
