"""Our ranks of ``benchmarks.ddp``: collective training of an MLP through fleet and the executor."""

import itertools
import json
import sys
import time

import numpy as np

from benchmarks import ddp, inputs
from fleet_mpi import fluid, paddle
from fleet_mpi.paddle.distributed import fleet
from fleet_mpi.ranks import cluster


def main(spec):
    """Train as told on rank 0's stdin."""
    fleet.init(is_collective=True)
    step = training(rank=fleet.worker_index(), **json.loads(spec))
    lines = _lines(cluster.world().comm.Dup(), fleet.worker_index())
    ddp.serve(step, lines, lambda text: print(text, flush=True) if fleet.is_first_worker() else None)


def training(width, batch, rank):
    """A step that trains on this rank's next batch and returns its loss."""
    batches, values = inputs.mlp(width, ddp.LAYERS, batch, rank)
    paddle.enable_static()
    x, label = fluid.data("x", [None, width]), fluid.data("label", [None, 1], "int64")
    hidden = x
    for _ in range(ddp.LAYERS - 1):
        hidden = fluid.layers.fc(hidden, width, act="relu")
    scores = fluid.layers.fc(hidden, width)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores, label))
    fleet.distributed_optimizer(fluid.optimizer.SGD(inputs.MLP_RATE)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for number in range(ddp.LAYERS):
        for kind in "wb":
            tensor = fluid.global_scope().find_var(f"fc_{number}.{kind}_0").get_tensor()
            tensor.set(values[f"{kind}{number}"], fluid.CPUPlace())
    feeds = itertools.cycle([{"x": one, "label": answer} for one, answer in batches])

    def step():
        found, = exe.run(feed=next(feeds), fetch_list=[loss])
        return float(found)
    return step


def _lines(comm, rank):
    """What rank 0 reads, on every rank; those that wait sleep, for others are being measured."""
    told = np.zeros(1, np.int64)
    while True:
        if rank == 0:
            told[0] = int(sys.stdin.readline() or 0)
        request = comm.Ibcast(told)
        while not request.Test():
            time.sleep(0.0005)
        yield told[0]


if __name__ == "__main__":
    main(sys.argv[1])
