"""Sums over rows that several processes share: each adds up some columns, for all."""

from fleet_mpi.kernels import kernel


@kernel
def sum_everywhere(rows, start, stop):
    """Columns ``start`` to ``stop`` of every row become rows[0] + rows[1] + ..., from left to right."""
    total = rows[0, start:stop].copy()
    for number in range(1, rows.shape[0]):
        total += rows[number, start:stop]
    rows[:, start:stop] = total
