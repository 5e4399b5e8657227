"""Gradients as float16 on their way: half the bytes, and a tenth of a percent of each number.

What is sent is rounded to float16; the sum is made as the reducer inside makes it (``exact`` adds float16 up as float32
and rounds once) and widened again. Nothing is scaled: what is beyond 65504 becomes infinite, as in the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays

if TYPE_CHECKING:
    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.reducer import Reducer, Reduction

NARROW = np.dtype(np.float16)


class HalfAllReduce:
    """Sums float32 arrays over an all-reduce of float16 ones (``inner``); arrays of other types go through as they
    are."""

    def __init__(self, inner: Reducer) -> None:
        self.inner = inner
        self.unused: dict[int, list[Array]] = {}  # float16 arrays by length, from reduction to reduction

    def start(self, array: Array) -> Reduction:
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        if array.dtype != np.float32:
            return self.inner.start(array)
        return _Reduction(self, array)

    def take(self, array: Array) -> Array:
        """A float16 array as long as this one, on the same device."""
        kept = self.unused.setdefault(len(array), [])
        return kept.pop() if kept else arrays.empty(len(array), NARROW, arrays.module_of(array))

    def give_back(self, narrow: Array) -> None:
        """An array for the next one."""
        self.unused[len(narrow)].append(narrow)


class _Reduction:
    """One array: narrowed, summed, widened."""

    def __init__(self, owner: HalfAllReduce, array: Array) -> None:
        self.owner, self.array, self.narrow = owner, array, owner.take(array)
        with np.errstate(over="ignore"):
            self.narrow[...] = array
        self.inner, self.done = owner.inner.start(self.narrow), False

    def advance(self) -> bool:
        """Move the sum on; returns whether anything was done."""
        return self.inner.advance()

    def is_over(self) -> bool:
        """Whether the array is the sum, which is widened when somebody asks for it."""
        if not self.done and self.inner.is_over():
            self.array[...] = self.narrow
            self.owner.give_back(self.narrow)
            self.done = True
        return self.done

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part."""
        return self.inner.waits_for()
