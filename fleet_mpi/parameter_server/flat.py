"""Where variables lie in flat arrays of bytes, on a worker and on the servers.

A worker has every dense variable whole, one after the other, each on a cache line: so its parameters are one
array and its gradients another. What a server keeps of them, its *image*, is the list of its shards, laid out
the same way. With one server both are the same; with several an image is made of runs of the worker's array.
An image travels in *pieces*: one, or above ``protocol.PIECE`` bytes several, cut where runs are long, so that
those need not be copied.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import aligned
from fleet_mpi.wire import protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fleet_mpi.placement.shard import Shard, Variable

    Range = tuple[int, int, np.dtype]   # bytes of one type: start, stop, dtype


class FlatLayout:
    """The place of every variable in a worker's flat arrays."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = {variable.name: variable for variable in variables}
        self.starts: dict[str, int] = {}
        self.nbytes = 0
        for variable in variables:
            self.starts[variable.name] = self.nbytes
            self.nbytes += aligned(_bytes_of(variable))
        self.ranges = _joined_ranges((self.starts[variable.name], _bytes_of(variable), np.dtype(variable.dtype))
                                     for variable in variables)

    def new_array(self) -> np.ndarray:
        """A flat array of zeros."""
        flat = arrays.empty(self.nbytes, np.uint8)
        flat[...] = 0
        return flat

    def views(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """{name: the variable's array} over a flat array."""
        return {name: flat[start:start + _bytes_of(self.variables[name])]
                .view(self.variables[name].dtype).reshape(self.variables[name].shape)
                for name, start in self.starts.items()}


class Run(NamedTuple):
    """Bytes that lie together in the worker's array and in the server's image."""

    flat: int
    image: int
    nbytes: int


class Piece(NamedTuple):
    """Bytes ``start`` to ``stop`` of an image, sent as one message; ``runs`` are what they are in the flat array."""

    start: int
    stop: int
    runs: tuple[Run, ...]

    def in_place(self, flat: np.ndarray) -> np.ndarray | None:
        """The piece as a part of the flat array, or None where it must be gathered."""
        if len(self.runs) != 1 or self.runs[0].nbytes != self.stop - self.start:
            return None
        return flat[self.runs[0].flat:self.runs[0].flat + self.runs[0].nbytes]

    def gather(self, flat: np.ndarray, staging: np.ndarray) -> None:
        """Copy from the flat array to ``staging``, which holds this piece."""
        end = 0
        for run in self.runs:
            start = run.image - self.start
            if start > end:
                # Servers compute over the gaps too: no number may come from what lay here before.
                staging[end:start] = 0
            end = start + run.nbytes
            staging[start:end] = flat[run.flat:run.flat + run.nbytes]

    def scatter(self, staging: np.ndarray, flat: np.ndarray) -> None:
        """Copy back to the flat array."""
        for run in self.runs:
            start = run.image - self.start
            flat[run.flat:run.flat + run.nbytes] = staging[start:start + run.nbytes]


class ServerImage:
    """What one server has of the flat array: its shards with their places, and the pieces it travels in."""

    def __init__(self, layout: FlatLayout, shards: Iterable[Shard]) -> None:
        self.shards, self.nbytes = tuple(shards), 0
        self.starts: list[int] = []
        runs: list[Run] = []
        for shard in self.shards:
            variable = layout.variables[shard.variable]
            itemsize = np.dtype(variable.dtype).itemsize
            flat = layout.starts[shard.variable] + shard.offset * itemsize
            self.starts.append(self.nbytes)
            _append_run(runs, Run(flat, self.nbytes, shard.size * itemsize))
            self.nbytes += aligned(shard.size * itemsize)
        self.dtypes = [np.dtype(layout.variables[shard.variable].dtype) for shard in self.shards]
        self.pieces = _cut_into_pieces(runs, self.nbytes)
        self.ranges = [self.typed_ranges(piece.start, piece.stop) for piece in self.pieces]

    def view(self, image: np.ndarray, index: int) -> np.ndarray:
        """The array of shard ``index`` within an image of bytes."""
        shard, dtype = self.shards[index], self.dtypes[index]
        start = self.starts[index]
        return image[start:start + shard.size * dtype.itemsize].view(dtype).reshape(shard.shape)

    def typed_ranges(self, start: int, stop: int) -> list[Range]:
        """(start, stop, dtype) of the ranges of equal type within some bytes of the image."""
        return _joined_ranges((begin, end - begin, self.dtypes[index])
                              for index, begin, end in self.within(start, stop))

    def within(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """(shard's index, start, stop) of what some bytes of the image have of each shard."""
        for index in range(max(0, bisect.bisect_right(self.starts, start) - 1), len(self.starts)):
            begin = self.starts[index]
            if begin >= stop:
                return
            end = min(begin + self.shards[index].size * self.dtypes[index].itemsize, stop)
            if max(begin, start) < end:
                yield index, max(begin, start), end


def _joined_ranges(parts: Iterable[tuple[int, int, np.dtype]]) -> list[Range]:
    """(start, stop, dtype) of (start, length, dtype): neighbours of one type, with the gap between them, become one."""
    found: list[Range] = []
    for start, nbytes, dtype in parts:
        stop = start + nbytes
        if found and found[-1][2] == dtype and aligned(found[-1][1]) == start:
            start = found.pop()[0]
        if start < stop:
            found.append((start, stop, dtype))
    return found


def _bytes_of(variable: Variable) -> int:
    return int(np.prod(variable.shape, dtype=np.int64)) * np.dtype(variable.dtype).itemsize


def _append_run(runs: list[Run], run: Run) -> None:
    """Add a run; one that goes on where the last one ended, on both sides, makes that one longer."""
    if runs:
        last = runs[-1]
        end = aligned(last.image + last.nbytes)
        if end == run.image and last.flat + (end - last.image) == run.flat:
            runs[-1] = Run(last.flat, last.image, run.image + run.nbytes - last.image)
            return
    runs.append(run)


def _cut_into_pieces(runs: Sequence[Run], nbytes: int) -> list[Piece]:
    if nbytes <= protocol.PIECE:
        return [Piece(0, nbytes, tuple(runs))] if nbytes else []
    pieces: list[Piece] = []
    short: list[Run] = []
    for run in runs:
        if run.nbytes >= protocol.LONG_RUN:
            _close(pieces, short)
            pieces += [Piece(part.image, part.image + part.nbytes, (part,)) for part in _parts(run)]
        else:
            if short and run.image + run.nbytes - short[0].image > protocol.PIECE:
                _close(pieces, short)
            short.append(run)
    _close(pieces, short)
    return pieces


def _close(pieces: list[Piece], short: list[Run]) -> None:
    """Let the short runs collected so far be one piece."""
    if short:
        pieces.append(Piece(short[0].image, short[-1].image + short[-1].nbytes, tuple(short)))
        short.clear()


def _parts(run: Run) -> Iterator[Run]:
    for start in range(0, run.nbytes, protocol.PIECE):
        yield Run(run.flat + start, run.image + start, min(protocol.PIECE, run.nbytes - start))
