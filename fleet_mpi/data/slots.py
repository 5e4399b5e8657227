"""The multislot text format, reading side: lines to columns of numbers to feeds.

``Records`` keeps samples by column (all values of a slot in one array), so that a million samples are
a few arrays and shuffling moves numbers only. Knows variables by name, dtype, shape and LoD level.
"""

import functools
import math
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi.errors import UsageError, nearest

_KINDS = {"float32": "float32", "fp32": "float32", "float64": "float64", "fp64": "float64",
          "int64": "int64", "int32": "int32"}


class Slot(NamedTuple):
    """One variable as the text format sees it.

    ``inner`` is the shape of one sample (dense) or of one row (ragged); None: any number of values. A key lies beside
    the samples and is not fed.
    """

    name: str
    dtype: Any
    is_ragged: bool
    inner: Any
    is_key: bool = False

    def accepts(self, count):
        """Whether a sample may have ``count`` values."""
        if count < 1 or self.inner is None:
            return count >= 1
        size = math.prod(self.inner)
        return count % size == 0 if self.is_ragged else count == size


def slots_of(variables):
    """The slots of a dataset's ``use_var``, in the order in which a line has them."""
    if not variables:
        raise UsageError("dataset: no variables; call set_use_var([...]) (2.x: init(use_var=[...])) first")
    return [_slot_of(variable) for variable in variables]


class Column:
    """The values of one slot for a number of samples: one flat array and the count of each sample."""

    def __init__(self, values, lengths):
        self.values = values
        self.lengths = lengths

    def part(self, start, stop):
        """Samples ``start`` to ``stop``, as views."""
        if self._width is not None:
            first, last = start * self._width, stop * self._width
        else:
            first, last = self._bounds[start], self._bounds[stop]
        return Column(self.values[first:last], self.lengths[start:stop])

    def take(self, order):
        """The samples with these numbers, in this order, as a copy."""
        lengths = self.lengths[order]
        if self._width is not None:
            return Column(self.values.reshape(-1, self._width)[order].ravel(), lengths)
        starts = self._bounds[:-1][order]
        moved_by = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return Column(self.values[np.arange(len(moved_by)) + moved_by], lengths)

    # Both are found once per column: a pass in small batches would otherwise look at all samples every time.
    @functools.cached_property
    def _width(self):
        """The count that all samples share, or None."""
        if len(self.lengths) and (self.lengths == self.lengths[0]).all():
            return int(self.lengths[0])
        return None

    @functools.cached_property
    def _bounds(self):
        """Where each sample's values start, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


class Records:
    """Samples of the same slots, kept by column."""

    def __init__(self, slots, columns):
        self.slots = slots
        self.columns = columns

    def __len__(self):
        return len(self.columns[0].lengths)

    @staticmethod
    def joined(slots, parts):
        """All samples of several records, one after the other."""
        if len(parts) == 1:
            return parts[0]
        columns = []
        for place, slot in enumerate(slots):
            values = [part.columns[place].values for part in parts]
            lengths = [part.columns[place].lengths for part in parts]
            columns.append(Column(np.concatenate([np.empty(0, slot.dtype), *values]),
                                  np.concatenate([np.empty(0, np.int64), *lengths])))
        return Records(slots, columns)

    def part(self, start, stop):
        """Samples ``start`` to ``stop``, as views."""
        stop = min(stop, len(self))
        return Records(self.slots, [column.part(start, stop) for column in self.columns])

    def take(self, order):
        """The samples with these numbers, in this order, as a copy."""
        return Records(self.slots, [column.take(order) for column in self.columns])

    def with_slot_taken(self, name, order):
        """The same samples, but the values of one slot come from the samples with these numbers."""
        names = [slot.name for slot in self.slots]
        if name not in names:
            raise UsageError(f"dataset: no slot is called {name!r}; {nearest(name, names)}")
        columns = list(self.columns)
        columns[names.index(name)] = columns[names.index(name)].take(order)
        return Records(self.slots, columns)

    def feed(self):
        """Name to array [samples, ...] (dense) or to (array [rows, ...], rows of each sample) (ragged)."""
        return {slot.name: _ragged_feed(slot, column) if slot.is_ragged else _dense_feed(slot, column)
                for slot, column in zip(self.slots, self.columns) if not slot.is_key}


def batches_of(parts, slots, batch_size):
    """Cut a stream of records into records of ``batch_size`` samples; the last one may be shorter."""
    rest = []
    held = 0
    for part in parts:
        rest.append(part)
        held += len(part)
        if held < batch_size:
            continue
        records = Records.joined(slots, rest)
        full = held - held % batch_size
        for start in range(0, full, batch_size):
            yield records.part(start, start + batch_size)
        held -= full
        rest = [records.part(full, full + held)] if held else []
    if held:
        yield Records.joined(slots, rest)


def parse(lines, slots, where, first_number=1, leading=0):
    """Records of multislot lines (bytes).

    Args:
        where: the file's name, for errors.
        first_number: the number of the first line in that file, for errors.
        leading: groups in front of the slots that are no numbers and are dropped (ins_id, content).
    """
    rows = [line.split() for line in lines]
    records = _parse_even(rows, slots, leading)
    return records if records is not None else _parse_each(rows, slots, where, first_number, leading)


def _slot_of(variable):
    kind = str(getattr(variable.dtype, "name", None) or variable.dtype).lower().rsplit(".", 1)[-1]
    if kind not in _KINDS:
        raise UsageError(f"dataset: variable {variable.name!r} is {variable.dtype}; files can hold "
                         f"{', '.join(sorted(set(_KINDS.values())))}")
    lod_level = getattr(variable, "lod_level", 0) or 0
    if lod_level > 1:
        raise UsageError(f"dataset: variable {variable.name!r} has lod_level {lod_level}; a multislot line can "
                         "say the lengths of one level only")
    inner = tuple(variable.shape[1:])
    if any(size is None or size < 0 for size in inner):
        inner = (1,) if lod_level else None
    return Slot(variable.name, np.dtype(_KINDS[kind]), lod_level == 1, inner)


def _ragged_feed(slot, column):
    values = column.values.reshape(-1, *slot.inner)
    return values, (column.lengths // math.prod(slot.inner)).tolist()


def _dense_feed(slot, column):
    samples = len(column.lengths)
    if slot.inner is not None:
        return column.values.reshape(samples, *slot.inner)
    if (column.lengths != column.lengths[0]).any():
        raise UsageError(f"dataset: slot {slot.name!r} has lod_level 0, so all samples of a batch need the same "
                         f"number of values; got {sorted(set(column.lengths.tolist()))}. Declare lod_level=1?")
    return column.values.reshape(samples, -1)


def _parse_even(rows, slots, leading):
    """The quick way, for lines that all have the same counts; None when they do not, or something is wrong."""
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    width = len(rows[0])
    flat = list(chain.from_iterable(rows))
    columns = []
    at = 2 * leading
    try:
        for slot in slots:
            text = rows[0][at]
            count = int(text)
            if not slot.accepts(count) or flat[at::width].count(text) != len(rows):
                return None
            texts = flat[at + 1::width] if count == 1 else \
                list(chain.from_iterable(row[at + 1:at + 1 + count] for row in rows))
            numbers = np.array(list(map(int if slot.dtype.kind == "i" else float, texts)), slot.dtype)
            columns.append(Column(numbers, np.full(len(rows), count, np.int64)))
            at += 1 + count
    except (ValueError, IndexError, OverflowError):
        return None
    return Records(slots, columns) if at == width and _leading_is_sound(flat, width, leading) else None


def _leading_is_sound(flat, width, leading):
    return all(flat[2 * group::width].count(b"1") == len(flat) // width for group in range(leading))


def _parse_each(rows, slots, where, first_number, leading):
    """The careful way: line by line, with errors that name the line and the slot; blank lines are skipped."""
    values, lengths = [[] for _ in slots], [[] for _ in slots]
    for number, row in enumerate(rows, first_number):
        if row:
            try:
                _parse_row(row, slots, leading, values, lengths)
            except ValueError as problem:
                raise UsageError(f"dataset: {where}, line {number}: {problem}") from None
    columns = [Column(np.array(numbers, slot.dtype), np.array(counts, np.int64))
               for slot, numbers, counts in zip(slots, values, lengths)]
    return Records(slots, columns)


def _parse_row(row, slots, leading, values, lengths):
    at = 2 * leading
    if row[0:at:2] != [b"1"] * leading:
        raise UsageError(f"expected {leading} group(s) '1 <text>' (ins_id, content) in front, got {_shown(row[:at])}")
    for place, slot in enumerate(slots):
        if at >= len(row):
            raise UsageError(f"slot {slot.name!r} is missing: the line ends after {place} of {len(slots)} slots")
        count = _count(row[at], slot)
        texts = row[at + 1:at + 1 + count]
        if len(texts) < count:
            raise UsageError(f"slot {slot.name!r}: {count} values announced, {len(texts)} there")
        values[place].extend(_numbers(texts, slot))
        lengths[place].append(count)
        at += 1 + count
    if at != len(row):
        raise UsageError(f"{len(row) - at} more word(s) after slot {slots[-1].name!r}, the last of {len(slots)}: "
                         f"{_shown(row[at:])}; does use_var have all slots, in the order of the line?")


def _count(text, slot):
    try:
        count = int(text)
    except ValueError:
        raise UsageError(f"slot {slot.name!r}: expected the number of its values, got {_shown([text])}") from None
    if not slot.accepts(count):
        if count < 1:
            raise UsageError(f"slot {slot.name!r}: {count} values; a slot has at least one (pad it)")
        expected = f"a multiple of {math.prod(slot.inner)}" if slot.is_ragged else math.prod(slot.inner)
        raise UsageError(f"slot {slot.name!r}: expected {expected} values for shape {list(slot.inner)}, got {count}")
    return count


def _numbers(texts, slot):
    """The values of a slot: all at once where they are plain, else one by one to name the culprit."""
    try:
        numbers = list(map(float if slot.dtype.kind == "f" else int, texts))
    except ValueError:
        return [_number(text, slot) for text in texts]
    if slot.dtype.kind == "f" or (max(numbers) < 2 ** 31 and min(numbers) >= -2 ** 31):
        return numbers
    return [_number(text, slot) for text in texts]


def _number(text, slot):
    try:
        if slot.dtype.kind == "f":
            return float(text)
        number = int(text)
        # Ids are written as unsigned 64-bit numbers; the upper half keeps its bits as negative ones.
        return number - 2 ** 64 if slot.dtype.itemsize == 8 and 2 ** 63 <= number < 2 ** 64 else _in_range(number, slot)
    except ValueError:
        raise UsageError(f"slot {slot.name!r}: expected {slot.dtype}, got {_shown([text])}") from None


def _in_range(number, slot):
    limits = np.iinfo(slot.dtype)
    if not limits.min <= number <= limits.max:
        raise ValueError
    return number


def _shown(words):
    return repr(b" ".join(words[:8]).decode("utf-8", "backslashreplace"))
