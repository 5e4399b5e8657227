"""What the workers of a collective job do together around a model; alone, nothing."""

import numpy as np

from fleet_mpi.fleet.paddle2 import paddle_fleet
from fleet_mpi.fleet.parallel_env import ParallelEnv, init_parallel_env


def workers():
    """How many workers train this model."""
    return ParallelEnv().nranks


def is_first():
    """Whether this worker prints and saves."""
    return ParallelEnv().local_rank == 0


def distributed(optimizer):
    """The optimizer of a job of several workers, which average their gradients; alone, the optimizer itself."""
    if workers() == 1:
        return optimizer
    init_parallel_env()
    return paddle_fleet.distributed_optimizer(optimizer)


def of_each(values, samples, left=None):
    """Collective: the values of each worker in turn, which has ``samples`` of them; alone, this worker's.

    Where a pass has only ``left`` samples to come, those that were read again to fill the workers' batches are cut off.
    """
    if workers() == 1:
        return [values]
    init_parallel_env()
    gathered = list(zip(*(paddle_fleet.util.all_gather(np.asarray(one)) for one in values)))
    wanted = [samples if left is None else min(samples, left - worker * samples) for worker in range(len(gathered))]
    return [[one[:keep] if np.ndim(one) and len(one) == samples else one for one in given]
            for given, keep in zip(gathered, wanted) if keep > 0]
