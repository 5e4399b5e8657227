"""A process group of PyTorch over MPI, for stock DistributedDataParallel and whatever else takes one.

Every call is over when it returns: PyTorch waits for a result without calling back, so nobody would move it on.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from fleet_mpi.collective.choosing import Options
from fleet_mpi.door.job import Job
from fleet_mpi.errors import UsageError
from fleet_mpi.torch.arguments import array_of, the_job

Tensors: TypeAlias = Sequence[torch.Tensor]
WHAT = "fleet.process_group"
# What is no sum of floats is combined in worker order by each worker itself.
COMBINE = {"SUM": torch.add, "AVG": torch.add, "MAX": torch.maximum, "MIN": torch.minimum, "PRODUCT": torch.mul,
           "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}


class ProcessGroup(dist.ProcessGroup):
    """Collective: the workers of a job as a process group: ``DistributedDataParallel(model, process_group=...)``.

    Every call is collective, and blocks until its result is there. ``how`` is that of ``parallel``.
    """

    def __init__(self, *, how: str | None = None, job: Job | None = None) -> None:
        self.job, self.how = the_job(job), Options(way=how or "").way or None
        self.group = self.job.group()
        super().__init__(self.group.index, self.group.size)

    def getBackendName(self) -> str:
        """PyTorch's name for what carries the messages."""
        return "fleet_mpi"

    def allreduce(self, given: Tensors, opts: Any = None) -> dist.Work:
        """Replace each tensor by the sum (or mean, maximum, ...) over all workers."""
        wanted = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        # PyTorch's objects for it equal their constants, and can be keys of nothing.
        op = next((name for name in COMBINE if wanted == getattr(dist.ReduceOp, name)), None)
        if op is None:
            raise UsageError(f"{WHAT}: all_reduce: expected one of {', '.join(COMBINE)}, got {wanted}")
        for one in given:
            self._reduce(one, op)
        return _done(given)

    def _reduce(self, tensor: torch.Tensor, op: str) -> None:
        if op in ("SUM", "AVG") and tensor.dtype in (torch.float32, torch.float64) and tensor.is_contiguous():
            self.job.all_reduce(array_of(tensor, WHAT), "sum", self.how)
        else:
            first, *others = self._gathered(tensor)
            for one in others:
                first = COMBINE[op](first, one)
            tensor.copy_(first)
        if op == "AVG":
            tensor.copy_(tensor / self.group.size)

    def broadcast(self, given: Tensors, opts: Any = None) -> dist.Work:
        """Give every worker the tensors of the root, worker 0 unless ``opts`` names another."""
        for one in given:
            if getattr(opts, "rootRank", 0) or not one.is_contiguous():
                one.detach().copy_(self._gathered(one)[getattr(opts, "rootRank", 0)])
            else:
                self.group.broadcast([_bytes(one)])
        return _done(given)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> dist.Work:
        """Give every worker every worker's tensors."""
        for places, one in zip(outputs, inputs):
            for place, found in zip(places, self._gathered(one)):
                place.copy_(found)
        return _done(outputs)

    def barrier(self, opts: Any = None) -> dist.Work:
        """Return when all workers have come."""
        self.job.barrier()
        return _done([])

    def _gathered(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every worker's tensor, by worker."""
        whole = tensor.detach().contiguous()
        return [torch.from_numpy(found.copy()).view(whole.dtype).view(whole.shape)
                for found, in self.group.gather([_bytes(whole)])]


def _bytes(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a contiguous tensor of any type."""
    return array_of(tensor.detach().reshape(-1).view(torch.uint8), WHAT)


def _done(result: Any) -> dist.Work:
    """What PyTorch waits for: it is there."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)
