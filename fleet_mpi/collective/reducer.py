"""What sums arrays over all workers: the seam behind which every way to do so lies.

A new way is one file with a Reducer, and its line in ``choosing``.
"""

from typing import Protocol

from fleet_mpi.arrays import Array


class Reduction(Protocol):
    """One array on its way to being the sum."""

    def advance(self) -> bool:
        """Do what can be done now without waiting; returns whether anything was."""

    def is_over(self) -> bool:
        """Whether the host has nothing left to wait for: the array is the sum for all that is computed from now on.

        On a device the sum may still be on its way; what is launched after this was True comes after it. Asked only by
        whoever needs the sum next: ``advance`` alone holds up nothing that is launched.
        """

    def waits_for(self) -> list[int]:
        """The workers that have not done their part."""


class Reducer(Protocol):
    """Sums arrays, one after the other; all workers must start the same ones in the same order."""

    def start(self, array: Array) -> Reduction:
        """Begin to replace a contiguous array, on every worker, by the sum."""
