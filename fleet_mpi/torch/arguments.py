"""What callers give: a job or none, and tensors as arrays over the same memory."""

import numpy as np
import torch

from fleet_mpi.door import joining
from fleet_mpi.door.job import Job
from fleet_mpi.errors import UsageError


def the_job(job: Job | None) -> Job:
    """The job given, or else the one that this process has joined."""
    return joining.current() if job is None else job


def array_of(tensor: torch.Tensor, what: str) -> np.ndarray:
    """A numpy array over the memory of a tensor, never a copy."""
    try:
        return np.asarray(tensor.detach().numpy())
    except (TypeError, RuntimeError) as problem:
        raise UsageError(f"{what}: expected a dense tensor in host memory, of a type that numpy has, got "
                         f"{tensor.dtype} on {tensor.device}: {problem}") from None
