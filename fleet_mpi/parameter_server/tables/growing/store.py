"""The rows of a growing table that one server keeps: ids, values with states, and the rule that updates them.

Slots 0..count-1 are in use, always: erasing moves the last row into the hole. What cannot be is refused before anything
has changed. Knows no messages, no other servers, and not why a row is stored or erased.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import EnvironmentProblem, UsageError, nearest
from fleet_mpi.kernels.reference import row_index, row_slab
from fleet_mpi.parameter_server.tables.growing import memory
from fleet_mpi.parameter_server.tables.growing.index import RowIndex, index_bytes
from fleet_mpi.parameter_server.tables.growing.layout import RowLayout
from fleet_mpi.parameter_server.tables.growing.rules import GrowingRule, growing_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from numpy.typing import DTypeLike


class RowStore:
    """Rows by id. ``first_values(ids, out)`` writes the values that rows begin with, the same at any time."""

    def __init__(self, width: int, dtype: DTypeLike, rule: GrowingRule | str, hypers: Mapping[str, Any],
                 first_values: Callable[[np.ndarray, np.ndarray], None], budget_bytes: int | None = None,
                 keeps_scores: bool = False) -> None:
        self.width, self.dtype = _checked_width(width), _checked_dtype(dtype)
        self.rule = growing_rule(rule) if isinstance(rule, str) else rule
        self.hypers, self.first_values = self.rule.complete(hypers), first_values
        self._initial = self.rule.initial(self.hypers)
        self.layout = RowLayout(self.width, self.dtype, self.rule, self._initial)
        self.budget_bytes = memory.physical_bytes() if budget_bytes is None else budget_bytes
        self.capacity = memory.rows_within(self.budget_bytes, self._bytes_of_scored if keeps_scores else self._bytes_of)
        columns: list[memory.Column] = [((self.layout.stride,), self.dtype), ((), np.int64), ((), np.int32)]
        self.capacity, arrays = memory.reserve(self.capacity, columns[:3 if keeps_scores else 2])
        self._slab, self._scores = arrays[0], arrays[2] if keeps_scores else None
        self._index = RowIndex(arrays[1])
        self._marks = np.zeros(self.capacity // 8 + 1, np.uint8)
        self._numbers = {state.name: np.empty(1, state.dtype or self.dtype) for state in self.rule.table_states}
        self.clear()

    # ------------------------------------------------------------------ by id

    def find(self, ids: np.ndarray) -> np.ndarray:
        """Slots (int32), -1 where an id is not stored; ids may repeat. Good until rows are erased."""
        return self._index.find(_line(ids))

    def read(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` [ids, width] with rows; those that are not stored as they would begin. Ids may repeat."""
        ids = _line(ids)
        if out.shape != (len(ids), self.width) or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise UsageError(f"rows are read into a contiguous array of {self.dtype} {(len(ids), self.width)}, got "
                             f"{out.dtype} {out.shape}")
        slots = self._index.find(ids)
        row_slab.gather(self._slab, slots, out)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            out[missing] = self._first_values(ids[missing])

    def add(self, ids: np.ndarray) -> np.ndarray:
        """The slots of ids; those that are not stored are made. Good until rows are erased."""
        ids = _line(ids)
        slots = self._index.find(ids)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            new = ids[missing]
            self._refuse_beyond_budget(new)
            slots[missing] = self._made(new, self._first_values(new))
        return slots

    def erase(self, ids: np.ndarray) -> int:
        """Drop those that are stored; returns how many there were."""
        moves = self._index.erase(_line(ids))
        row_slab.move(self._slab, moves)
        if self._scores is not None:
            row_slab.move(self._scores.reshape(-1, 1), moves)
        return len(moves)

    def load(self, ids: np.ndarray, values: np.ndarray, states: Mapping[str, np.ndarray]) -> None:
        """Take over whole rows, from a file: ids are unique, rows that are there are replaced."""
        ids = _line(ids)
        if len(np.unique(ids)) != len(ids):
            raise UsageError(f"rows are loaded once each: of {len(ids)} ids {len(np.unique(ids))} are different")
        parts = {"values": values, **states}
        for name in parts.keys() ^ {"values", *self._initial}:
            raise UsageError(f"rows of rule {self.rule.name!r} are loaded with their states {sorted(self._initial)}, "
                             f"got {sorted(states)}; look at {name!r}")
        for name, part in parts.items():
            self._refuse_shape(name, part, len(ids))
        slots = self._index.find(ids)
        missing = np.flatnonzero(slots < 0)
        self._refuse_beyond_budget(ids[missing])
        slots[missing] = self._made(ids[missing], np.ascontiguousarray(values[missing], self.dtype))
        for name, part in parts.items():
            if name in self._numbers:
                self._numbers[name][...] = part
            else:
                column, size = self._place_of(name)
                self._slab[slots, column:column + size] = part

    # ------------------------------------------------------------------ by slot

    @property
    def count(self) -> int:
        """How many rows are stored."""
        return self._index.count

    def update(self, slots: np.ndarray, grads: np.ndarray, rate: np.ndarray) -> None:
        """Run the rule on these rows (each once), and on all others where it moves those; ``rate`` is [1]."""
        slots = np.ascontiguousarray(slots, np.int32)
        if grads.shape != (len(slots), self.width):
            raise UsageError(f"the gradients of {len(slots)} rows are {(len(slots), self.width)}, got {grads.shape}")
        bad = row_index.first_unfit(slots, self._marks, self.count)
        if bad >= 0:
            raise UsageError(f"rows are updated once each: slot {slots[bad]} at position {bad} of {len(slots)} comes "
                             f"again, or is none of the {self.count} that are in use")
        given = {"learning_rate": rate, **self.hypers, **self._numbers}
        self.rule.run(self._slab[:self.count], slots, np.ascontiguousarray(grads, self.dtype), given)

    def ids(self) -> np.ndarray:
        """Int64 [count], in order of slots: a view."""
        return self._index.keys[:self.count]

    def values(self) -> np.ndarray:
        """[count, width], in order of slots: a view of the slab."""
        return self.state("values")

    def state(self, name: str) -> np.ndarray:
        """A state of all rows, [count, width] or [count, 1], or the [1] number of the table: a view."""
        if name in self._numbers:
            return self._numbers[name]
        column, size = self._place_of(name)
        return self._slab[:self.count, column:column + size]

    @property
    def scores(self) -> np.ndarray | None:
        """Int32 [count], 0 for a row that begins: a view, or None where none are kept."""
        return None if self._scores is None else self._scores[:self.count]

    def clear(self) -> None:
        """Forget every row, and begin the states anew."""
        self._index.clear()
        for name, number in self._numbers.items():
            number[...] = self._initial[name]

    @property
    def nbytes(self) -> dict[str, int]:
        """What memory holds, in bytes."""
        used = self.layout.used * self.dtype.itemsize
        return {"rows": self.count * used, "padding": self.count * (self.layout.row_bytes - used),
                "keys": self.count * 8, "index": self._index.nbytes + self.count // 8 + 1,
                "scores": 0 if self._scores is None else self.count * 4}

    # ------------------------------------------------------------------ what these are made of

    def _first_values(self, ids: np.ndarray) -> np.ndarray:
        values = np.empty((len(ids), self.width), self.dtype)
        self.first_values(ids, values)
        return values

    def _made(self, ids: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The slots of new rows with these values."""
        slots = np.full(len(ids), row_index.NOT_STORED, np.int32)
        before = self.count
        try:
            self._index.insert(ids, slots)
        except MemoryError:
            self._index.erase(self.ids()[before:].copy())
            raise EnvironmentProblem(f"a growing table of {before:,} rows cannot grow: the system refuses memory for "
                                     f"its index. {self._remedy()}") from None
        row_slab.begin(self._slab, slots, values, self.layout.rest)
        if self._scores is not None:
            self._scores[before:self.count] = 0
        return slots

    def _refuse_beyond_budget(self, new: np.ndarray) -> None:
        if self.count + len(new) > self.capacity:
            more = len(np.unique(new))
            if self.count + more > self.capacity:
                raise EnvironmentProblem(
                    f"a growing table of {self.count:,} rows ({sum(self.nbytes.values()):,} bytes) cannot take "
                    f"{more:,} more: there is room for {self.capacity:,} (budget_bytes={self.budget_bytes:,}). "
                    f"{self._remedy()}")

    @staticmethod
    def _remedy() -> str:
        return "Allow more memory, erase rows, or take more servers."

    def _refuse_shape(self, name: str, part: np.ndarray, count: int) -> None:
        expected = (1,) if name in self._numbers else (count, self._place_of(name)[1])
        if part.shape != expected:
            raise UsageError(f"{name!r} of {count} rows is {expected}, got {part.shape}")

    def _place_of(self, name: str) -> tuple[int, int]:
        """The first column and the number of columns of values or of a state."""
        places = {"values": (0, self.width), **self.layout.states}
        if name not in places:
            raise UsageError(f"rule {self.rule.name!r} keeps no state {name!r}; {nearest(name, self._initial)}")
        return places[name]

    def _bytes_of(self, rows: int) -> int:
        return rows * (self.layout.row_bytes + 8) + rows // 8 + 1 + index_bytes(rows)

    def _bytes_of_scored(self, rows: int) -> int:
        return self._bytes_of(rows) + 4 * rows


def _line(ids: np.ndarray) -> np.ndarray:
    """Ids as kernels take them; UsageError for what is no list of whole numbers."""
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise UsageError(f"ids are a line of int64, got {ids.dtype} {ids.shape}")
    return np.ascontiguousarray(ids, np.int64)


def _checked_width(width: int) -> int:
    if width < 1:
        raise UsageError(f"a row has at least one element, got width {width}")
    return width


def _checked_dtype(dtype: DTypeLike) -> np.dtype:
    found = np.dtype(dtype)
    if found.kind != "f" or found.itemsize not in (4, 8):
        raise UsageError(f"rows of growing tables are float32 or float64, got {found}")
    return found
