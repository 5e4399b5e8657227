"""Samples in memory change workers. Knows columns of samples, and how to gather arrays of all workers."""

import numpy as np

from fleet_mpi.data.slots import Column, Records


def exchanged(records, whose, worker, workers, gather):
    """Collective: the samples of all workers that are this one's, in worker order.

    One worker after the other shows all its samples, and everyone takes out what is his: beside its own, a worker
    needs memory for those of one other.

    Args:
        records: this worker's samples; all workers have the same slots.
        whose: for each of them the worker that it goes to.
        gather: gives every worker's array, in order, for an array of this one's.
    """
    parts = []
    for showing in range(workers):
        shown, to = (records, whose) if showing == worker else (records.part(0, 0), whose[:0])
        mine = np.flatnonzero(gather(np.asarray(to, np.int64))[showing] == worker)
        columns = [Column(gather(np.ascontiguousarray(column.values))[showing],
                          gather(np.ascontiguousarray(column.lengths))[showing]) for column in shown.columns]
        parts.append(Records(records.slots, columns).take(mine))
    return Records.joined(records.slots, parts)
