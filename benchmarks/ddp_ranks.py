"""The peer's ranks of ``benchmarks.ddp``: the same MLP by PyTorch's DistributedDataParallel with gloo."""

import itertools
import json
import os
import sys

import torch
from torch import distributed, nn
from torch.nn import functional as F

from benchmarks import ddp, inputs
from benchmarks.torch_peer import linear


def main(spec):
    """Train as told on stdin."""
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks))
    step = training(rank=rank, **json.loads(spec))
    ddp.serve(step, sys.stdin, lambda text: print(text, flush=True) if rank == 0 else None)
    distributed.destroy_process_group()


def training(width, batch, rank):
    """A step that trains on this rank's next batch and returns its loss."""
    batches, values = inputs.mlp(width, ddp.LAYERS, batch, rank)
    layers = []
    for number in range(ddp.LAYERS):
        layers += [linear(values[f"w{number}"], values[f"b{number}"]), nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=inputs.MLP_RATE)
    turn = itertools.cycle([(torch.from_numpy(x), torch.from_numpy(label[:, 0])) for x, label in batches])

    def step():
        x, label = next(turn)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


if __name__ == "__main__":
    main(sys.argv[1])
