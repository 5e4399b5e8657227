"""Passes over data: loaders from data sets, and the loop that calls a model and its callbacks batch by batch."""

import numpy as np

from fleet_mpi.data.collating import flat_fields
from fleet_mpi.data.data_loader import DataLoader
from fleet_mpi.data.io_datasets import Dataset, IterableDataset
from fleet_mpi.fleet.batch_sampling import DistributedBatchSampler
from fleet_mpi.hapi import together
from fleet_mpi.hapi.mode_programs import PREDICT


def loader_of(data, batch_size, num_workers, shuffle=False, drop_last=False):
    """A loader of this worker's batches of a data set; a loader, or anything else that gives batches, as it is."""
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size=batch_size, drop_last=drop_last, num_workers=num_workers)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_sampler=DistributedBatchSampler(data, batch_size, shuffle=shuffle,
                                                                      drop_last=drop_last), num_workers=num_workers)
    return data


def steps_of(loader):
    """How many batches a pass has; None where that is not known."""
    try:
        return len(loader)
    except TypeError:
        return None


def samples_of(loader):
    """How many samples a pass of all workers has, without those that come again; None where that is not known."""
    sampler = getattr(loader, "batch_sampler", None)
    return len(sampler.dataset) if isinstance(sampler, DistributedBatchSampler) else None


def run_pass(model, loader, calls, mode):
    """One pass: returns (the last batch's logs, the outputs of all batches of a prediction)."""
    logs, outputs = {}, []
    model.forget(samples_of(loader))
    for step, batch in enumerate(loader):
        fields = [np.asarray(one) for one in flat_fields(batch)]
        calls.on_batch_begin(mode, step, logs)
        if mode == PREDICT:
            outputs.append(model.predict_batch(fields))
        else:
            logs.update(model.log_of(mode, fields))
        logs.update(step=step, batch_size=len(fields[0]) * together.workers())
        calls.on_batch_end(mode, step, logs)
    model.forget(None)
    return logs, outputs
