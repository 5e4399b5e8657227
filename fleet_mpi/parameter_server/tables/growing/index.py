"""Which slot keeps which id: keys by slot, and an index that grows in shares, so that no call waits for a rehash."""

from __future__ import annotations

import numpy as np

from fleet_mpi.kernels.reference import row_index

_SMALLEST = 1024  # entries
_NOTHING = np.zeros(0, np.uint32)
# An index of 16 parts begins to grow with 12 of them in use and is complete with 13: each new row enters 13.
_BEGIN, _END = 12, 13
SHARE = 13


def index_bytes(rows: int) -> int:
    """The most that the index takes on the way to so many rows."""
    size = _SMALLEST
    while rows >= size // 16 * _BEGIN:
        size *= 2
    return 4 * (size + size // 2 if size > _SMALLEST else size)


class RowIndex:
    """Slots 0..count-1 of ``keys`` ([capacity] int64), by id. ``moved`` counts what was entered in larger indexes."""

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        self.count = self.moved = 0
        self.clear()

    def clear(self) -> None:
        """Forget every id."""
        self.count, self._cursor = 0, 0
        self._entries, self._growing = np.zeros(_SMALLEST, np.uint32), _NOTHING

    @property
    def nbytes(self) -> int:
        """What the index takes, keys apart."""
        return self._entries.nbytes + self._growing.nbytes

    def find(self, ids: np.ndarray) -> np.ndarray:
        """The slots (int32) of ids, -1 where one is not stored."""
        slots = np.empty(len(ids), np.int32)
        row_index.find(ids, self.keys, self._entries, slots)
        return slots

    def insert(self, ids: np.ndarray, slots: np.ndarray) -> None:
        """Give those ids whose slot is -1 the next slots; MemoryError where no larger index can be had.

        The keys must have room for them.
        """
        done = 0
        while done < len(ids):
            before = self.count
            stopped, self.count = row_index.insert(ids[done:], self.keys, self._entries, slots[done:], before,
                                                   self._most())
            done += stopped
            self._grow(self.count - before)

    def erase(self, ids: np.ndarray) -> np.ndarray:
        """Forget those that are stored; the moves (from, to) of rows that keep slots without holes, in order."""
        moves, before = np.empty((len(ids), 2), np.int32), self.count
        self.count, self._cursor = row_index.erase(ids, self.keys, self._entries, self._growing, moves, before,
                                                   self._cursor)
        return moves[:before - self.count]

    def _most(self) -> int:
        return len(self._entries) // 16 * (_END if len(self._growing) else _BEGIN)

    def _grow(self, added: int) -> None:
        """One share for each row that came."""
        if len(self._growing):
            begin, end = self._cursor, min(self._cursor + SHARE * added, self.count)
            row_index.enter(self.keys, self._growing, begin, end)
            self._cursor, self.moved = end, self.moved + end - begin
            if end == self.count:
                self._entries, self._growing, self._cursor = self._growing, _NOTHING, 0
        elif self.count >= self._most():
            # Zeros of this size come from the system page by page, none is written here.
            self._growing = np.zeros(2 * len(self._entries), np.uint32)
