"""Memory of a growing table: address space that is reserved once and becomes memory page by page, and its budget.

Growing is writing to the next page: nothing is ever copied, and arrays of the front of a table stay where they are.
Knows no rows.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike

_NO_RESERVE = 0x4000  # Linux: not counted as memory, where the system leaves that to programs
# What small tables take comes in ordinary pages; a huge one would be 2 MiB for the first row.
_SMALL_BYTES = 4 << 20
_LEAST_ROWS = 1024

# The shape of a row, and the type of its elements.
Column = tuple[tuple[int, ...], "DTypeLike"]


def physical_bytes() -> int:
    """The memory of this machine: the budget of a table that is given none."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def rows_within(budget_bytes: int, bytes_of: Callable[[int], int]) -> int:
    """The most rows whose bytes stay within a budget; ``bytes_of`` never falls as rows are added."""
    low, high = 0, 1 << 31
    while low < high:
        middle = (low + high + 1) // 2
        if bytes_of(middle) <= budget_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def reserve(rows: int, columns: Sequence[Column]) -> tuple[int, list[np.ndarray]]:
    """(rows, an array of so many for each column), all zeros; fewer rows where the system refuses address space.

    EnvironmentProblem where it refuses even a little.
    """
    wanted = rows
    while True:
        try:
            return rows, [_reserved((rows, *shape), np.dtype(dtype)) for shape, dtype in columns]
        except (OSError, OverflowError, MemoryError) as error:
            if rows <= _LEAST_ROWS:
                raise EnvironmentProblem(f"the system refuses the memory of a growing table of {rows:,} rows "
                                         f"({error}): look at ulimit -v and vm.overcommit_memory") from None
        # A quarter: the rest of the process needs address space, too.
        rows = max(rows // 4, min(rows, _LEAST_ROWS))
        notices.once("reserve", f"the system refuses address space for a growing table of {wanted:,} rows (ulimit -v, "
                                f"vm.overcommit_memory): it gets less, and is full earlier")


def _reserved(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros that take no memory until they are written, on a page's border."""
    nbytes = max(1, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
    space = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    _ask_for_huge_pages(space, nbytes)
    return np.frombuffer(space, dtype, int(np.prod(shape, dtype=np.int64))).reshape(shape)


def _ask_for_huge_pages(space: mmap.mmap, nbytes: int) -> None:
    """Rows are read in no order: with pages of 4 KiB nearly every one would miss the TLB."""
    if nbytes > _SMALL_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            space.madvise(mmap.MADV_HUGEPAGE, _SMALL_BYTES, nbytes - _SMALL_BYTES)
        except OSError:
            pass  # a kernel without them: slower, and right
