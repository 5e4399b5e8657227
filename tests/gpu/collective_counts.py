"""One rank of a collective job on devices: trains a few steps and prints what one step asked of its device, as JSON.

``polls_for_sums`` and ``waits_for_sums`` are those between the last gradient and the launch of the updates.
``mpirun -np 2 python -m tests.gpu.collective_counts``; settings choose the way of the sums.
"""

import json
import sys

import numpy as np

from fleet_mpi import fluid, paddle
from fleet_mpi.connections.equal import EqualConnection
from fleet_mpi.paddle.distributed import fleet
from tests.gpu_emulation import counters

STEPS = 3  # the last one is counted: the first ones compile and find their memory


def main():
    """Train and count; returns 0."""
    paddle.enable_static()
    fleet.init(is_collective=True)
    waited = _count_waits_for_sums()
    loss = _minimized()
    executor = paddle.static.Executor(fluid.CUDAPlace())
    executor.run(paddle.static.default_startup_program())
    for step in range(STEPS):
        with counters.counted() as counts:
            executor.run(paddle.static.default_main_program(), feed=_batch(step), fetch_list=[loss])
    print(json.dumps({**vars(counts), **waited[-1]}), flush=True)
    return 0


def _minimized():
    x, y = paddle.static.data("x", [None, 8], "float32"), paddle.static.data("y", [None, 1], "float32")
    hidden = fluid.layers.fc(x, 16, act="relu")
    loss = paddle.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fleet.distributed_optimizer(paddle.optimizer.Momentum(0.05, 0.9), fleet.DistributedStrategy()).minimize(loss)
    return loss


def _batch(step):
    random = np.random.default_rng([fleet.worker_index(), step])
    return {"x": random.standard_normal((4, 8), np.float32), "y": random.standard_normal((4, 1), np.float32)}


def _count_waits_for_sums():
    """[{name: count}] of every step to come."""
    found, wait = [], EqualConnection.wait

    def counted(connection):
        with counters.counted() as counts:
            wait(connection)
        found.append({"polls_for_sums": counts.polls, "waits_for_sums": counts.waits})
    EqualConnection.wait = counted
    return found


if __name__ == "__main__":
    sys.exit(main())
