"""The mean of what workers contribute to rows of a table: for tables of any kind. Knows nothing that is kept."""

from collections.abc import Sequence

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.update_rules import MergedRows, RowMerger


class RowMean:
    """Calling it gives the mean; what it returned is overwritten by the next call."""

    def __init__(self, height: int) -> None:
        self.height, self._merge = height, RowMerger()

    def __call__(self, contributions: Sequence[Rows]) -> MergedRows:
        """Row gradients summed by id in worker order, divided by the number of all contributors, with the row or not.
        """
        if len(contributions) == 1:
            # Workers merge what they send.
            rows, = contributions
            return MergedRows(rows.ids, rows.values, self.height)
        merged = self._merge(Rows(np.concatenate([rows.ids for rows in contributions]),
                                  np.concatenate([rows.values for rows in contributions]), self.height))
        np.multiply(merged.values, 1.0 / len(contributions), out=merged.values)
        return merged
