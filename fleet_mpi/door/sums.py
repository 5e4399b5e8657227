"""Sums and broadcasts of whatever arrays workers have, in place.

Short arrays of one type travel together: a call costs as many messages as there is to send, not as there are arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.collective import choosing
from fleet_mpi.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reducer

SHORT = 1 << 16    # bytes: longer arrays are sent from where they lie
OPS = ("sum", "mean")
WAYS = ("exact", "fast")


class Sums:
    """What one worker sums with the others of its group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._reducers: dict[str | None, Sequence[Reducer]] = {}
        self._staged: dict[np.dtype, np.ndarray] = {}

    def all_reduce(self, arrays: Sequence[np.ndarray], op: str, how: str | None) -> None:
        """Collective: replace arrays by their sum, or mean, over all workers."""
        if op not in OPS:
            raise UsageError(f"all_reduce: op: expected sum or mean, got {op!r}; {nearest(op, OPS)}")
        if op == "mean":
            for one in arrays:
                if one.dtype.kind not in "fc":
                    raise UsageError(f"all_reduce: a mean of {one.dtype} cannot be written to its place: use op='sum', "
                                     f"or arrays of floats")
        lines = self._gathered(arrays)
        self.total([line for line, _ in lines], how)
        for line, places in lines:
            if op == "mean":
                np.multiply(line, 1.0 / self.group.size, out=line)
            _spread(line, places)

    def total(self, lines: Iterable[np.ndarray], how: str | None = None) -> None:
        """Collective: replace contiguous lines by their sums over all workers."""
        if self.group.size == 1:
            return
        reducer = self._reducer(how)
        self.group.finish([reducer.start(line) for line in lines], "what all_reduce sums")

    def broadcast(self, arrays: Sequence[np.ndarray]) -> None:
        """Collective: let arrays have worker 0's values."""
        lines = self._gathered(arrays)
        self.group.broadcast([line for line, _ in lines])
        for line, places in lines:
            _spread(line, places)

    def _reducer(self, how: str | None) -> Reducer:
        if how is not None and how not in WAYS:
            raise UsageError(f"all_reduce: how: expected exact, fast or None, got {how!r}; {nearest(how, WAYS)}")
        if how not in self._reducers:
            make = choosing.WAYS[how or choosing.by_size(self.group)].on_hosts
            assert make is not None   # those that are chosen have it
            self._reducers[how] = make(self.group, None)
        return self._reducers[how][0]

    def _gathered(self, arrays: Sequence[np.ndarray]) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """(line to send, the arrays that it is a copy of): none where an array is sent from its place."""
        short: dict[np.dtype, list[np.ndarray]] = {}
        found: list[tuple[np.ndarray, list[np.ndarray]]] = []
        for one in arrays:
            if one.nbytes > SHORT or len(arrays) == 1:
                is_line = one.flags.c_contiguous
                found.append((one.reshape(-1), []) if is_line else (np.ascontiguousarray(one).reshape(-1), [one]))
            else:
                short.setdefault(one.dtype, []).append(one)
        for dtype, members in short.items():
            line = self._stage(dtype, sum(one.size for one in members))
            np.concatenate([one.reshape(-1) for one in members], out=line)
            found.append((line, members))
        return found

    def _stage(self, dtype: np.dtype, size: int) -> np.ndarray:
        known = self._staged.get(dtype)
        if known is None or len(known) < size:
            known = self._staged[dtype] = np.empty(size, dtype)
        return known[:size]


def _spread(line: np.ndarray, places: list[np.ndarray]) -> None:
    start = 0
    for one in places:
        one[...] = line[start:start + one.size].reshape(one.shape)
        start += one.size
