"""Mean and variance over all workers' batches from those of each: the same bits on every worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.arrays import Array


def joined(parts: Sequence[tuple[Array, Array, Array]]) -> tuple[Array, Array, int]:
    """(mean, variance, count) of all batches from a list, in worker order, of each one's; arrays are one per channel.

    In float64: from the deviations within each batch and those of the batches' means, so that nothing cancels.
    """
    count = sum(int(one[2][0]) for one in parts)
    mean: Any = sum(one[0].astype(np.float64) * int(one[2][0]) for one in parts) / count
    squares: Any = sum((one[1].astype(np.float64) + (one[0].astype(np.float64) - mean) ** 2) * int(one[2][0])
                       for one in parts)
    return mean, squares / count, count


def added(parts: Sequence[Sequence[Array]]) -> list[Array]:
    """Per position, the workers' arrays added up in worker order; of what ``gather`` gives."""
    totals = [np.array(one) for one in parts[0]]
    for part in parts[1:]:
        for total, one in zip(totals, part):
            total += one
    return totals
