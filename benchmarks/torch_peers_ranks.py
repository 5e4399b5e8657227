"""The ranks of benchmarks.torch_peers: rounds of steps of each way, in turns; worker 0 prints seconds a step."""

import json
import math
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

import fleet_mpi.torch as fleet
from fleet_mpi.examples.torch import clicks as click_model, data


def dense(size, batch, rounds, steps):
    """Perceptrons of three layers, as many numbers as ``size`` says."""
    job, width = fleet.join(servers=0), math.isqrt(size // 3)
    draw = data.generator(job.worker)
    x, y = (torch.randn(batch, width, generator=draw) for _ in range(2))

    def step_of(wrapped):
        optimizer = torch.optim.SGD(wrapped.parameters(), 1e-4)

        def step():
            optimizer.zero_grad()
            mse_loss(wrapped(x), y).backward()
            optimizer.step()
        return step

    def model():
        torch.manual_seed(0)
        return nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(width, width), nn.ReLU())))
    ddp = nn.parallel.DistributedDataParallel
    _in_turns(job, {"parallel": step_of(fleet.parallel(model())),
                    "ddp": step_of(ddp(model(), process_group=fleet.process_group())),
                    "gloo": step_of(ddp(model(), process_group=_gloo(job)))}, rounds, steps)
    dist.destroy_process_group()


def _gloo(job):
    """gloo between the same ranks, which meet by a file that worker 0 names."""
    path = [tempfile.mktemp(prefix="gloo-")]
    name = torch.zeros(200, dtype=torch.uint8)
    name[:len(path[0])] = torch.tensor(list(path[0].encode()), dtype=torch.uint8)
    job.broadcast(name.numpy())
    path = bytes(name.tolist()).rstrip(b"\0").decode()
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=job.worker, world_size=job.workers,
                            timeout=timedelta(seconds=300))
    return dist.group.WORLD


def clicks(height, slots, dim, batch, rounds, steps):
    """The click model of the examples, by a server and alone."""
    job = fleet.join(servers=1)
    batches = [data.clicks(batch, data.generator(job.worker, number), slots, height) for number in range(8)]
    by_servers = click_model.Model(slots, dim, height)
    servers = [fleet.server_optimizer(by_servers.named_parameters(), "adam", 1e-3)]
    own = Alone(slots, dim, height)
    alone = [torch.optim.Adagrad(own.rows.parameters(), 0.1, eps=1e-6), torch.optim.Adam(own.deep.parameters(), 1e-3)]

    def step_of(model, optimizers):
        def step():
            step.count += 1
            ids, numbers, clicked = batches[step.count % len(batches)]
            for one in optimizers:
                one.zero_grad()
            binary_cross_entropy_with_logits(model(ids, numbers), clicked).backward()
            for one in optimizers:
                one.step()
        step.count = 0
        return step
    _in_turns(job, {"servers": step_of(by_servers, servers), "alone": step_of(own, alone)}, rounds, steps)


class Alone(click_model.Model):
    """The same with rows of its own."""

    def __init__(self, slots, dim, height):
        nn.Module.__init__(self)
        self.rows = nn.Embedding(height, dim, sparse=True)
        self.deep = nn.Sequential(nn.Linear(slots * dim + 4, 64), nn.ReLU(), nn.Linear(64, 1))


def _in_turns(job, ways, rounds, steps):
    """Measure; the first round warms up."""
    found = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, step in ways.items():
            job.barrier()
            began = time.perf_counter()
            for _ in range(steps):
                step()
            job.barrier()
            if number:
                found[way].append((time.perf_counter() - began) / steps)
    if job.worker == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"dense": dense, "clicks": clicks}[sys.argv[1]](**json.loads(sys.argv[2]))
