"""The process group: stock DistributedDataParallel over it, and what PyTorch may ask of it."""

from types import SimpleNamespace

import pytest

from fleet_mpi.errors import UsageError
from tests.unit.door.loopback_job import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import torch.distributed as dist  # noqa: E402

import fleet_mpi.torch as fleet  # noqa: E402
from tests.unit.torch import trainings  # noqa: E402
from tests.unit.torch.trainings import digest  # noqa: E402


def test_distributed_data_parallel_averages():
    assert run(lambda job: digest(trainings.train_by_ddp(job)), 2, 0) == [digest(trainings.by_halves(2))] * 2


def reduced(group, values, op):
    """The tensor after an all-reduce."""
    options = dist.AllreduceOptions()
    options.reduceOp = op
    group.allreduce([values], options).wait()
    return values.tolist()


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16, torch.int64), ids=str)
def test_every_way_to_combine(dtype):
    def work(job):
        group = fleet.process_group(job=job)
        mine = torch.tensor([job.worker + 1, 6]).to(dtype)
        return [reduced(group, mine.clone(), getattr(dist.ReduceOp, name))
                for name in ("SUM", "AVG", "MAX", "MIN", "PRODUCT")]
    mean = [2, 6] if dtype == torch.int64 else [2.0, 6.0]
    assert run(work, 3, 0) == [[[6, 18], mean, [3, 6], [1, 6], [6, 216]]] * 3


def test_broadcast_gather_and_barrier():
    def work(job):
        group = fleet.process_group(job=job)
        mine, turned = torch.full((2, 3), job.worker), torch.full((2, 3), job.worker).t()
        options = dist.BroadcastOptions()
        options.rootRank = 1
        places = [torch.empty(2, dtype=torch.bool) for _ in range(2)]
        group.allgather([places], [torch.tensor([True, job.worker == 1])]).wait()
        group.barrier().wait()
        group.broadcast([mine], options).wait()
        group.broadcast([turned]).wait()
        return [one.tolist() for one in places], mine.unique().tolist(), turned.unique().tolist(), group.size()
    assert run(work, 2, 0) == [([[True, False], [True, True]], [1], [0], 2)] * 2


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="expected one of exact, fast"):
        run(lambda job: fleet.process_group(how="quick", job=job), 1, 0)
    with pytest.raises(UsageError, match="expected one of SUM, AVG"):
        run(lambda job: fleet.process_group(job=job).allreduce([torch.ones(2)], SimpleNamespace(reduceOp="LXOR")), 1, 0)
