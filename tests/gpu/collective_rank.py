"""One rank of a collective job on devices: sums, trains a few steps, and prints what it saw as one line of JSON.

``mpirun -np 2 python tests/gpu/collective_rank.py``; settings choose the way of the sums.
"""

import hashlib
import json
import os
import sys

import numpy as np

import fleet_mpi.paddle as paddle
from fleet_mpi import arrays, fluid
from fleet_mpi.collective.exact import add_in_order
from fleet_mpi.collective.exact_on_devices import DeviceExactAllReduce
from fleet_mpi.paddle.distributed import ParallelEnv, fleet
from fleet_mpi.ranks import cluster
from fleet_mpi.wire.mpi import MPITransport

STEPS = 3
LENGTH = 100_003


def main():
    """Train; returns 0."""
    paddle.enable_static()
    fleet.init(is_collective=True)
    place = paddle.CUDAPlace(ParallelEnv().device_id)
    loss = _minimized()
    exe = paddle.static.Executor(place)
    exe.run(fluid.default_startup_program())
    for step in range(STEPS):
        exe.run(fluid.default_main_program(), feed=_batch(step), fetch_list=[loss])
    values = {one.name: arrays.to_host(fluid.global_scope().array(one.name))
              for one in fluid.default_main_program().all_parameters()}
    xp = place.array_module()
    print(json.dumps({"rank": fleet.worker_index(), "device": xp.cuda.Device().id,
                      "by_place": fluid.cuda_places()[0].device_id,
                      "flag": os.environ.get("FLAGS_selected_gpus", ""), "bits": sums_have_the_hosts_bits(xp),
                      "hash": hashlib.sha256(b"".join(values[name].tobytes() for name in sorted(values))).hexdigest()}))
    return 0


def _minimized():
    x, y = fluid.data("x", [None, 8], "float32"), fluid.data("y", [None, 1], "float32")
    hidden = fluid.layers.fc(x, 16, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fleet.distributed_optimizer(paddle.optimizer.Momentum(0.05, 0.9), fleet.DistributedStrategy()).minimize(loss)
    return loss


def _batch(step):
    random = np.random.default_rng([fleet.worker_index(), step])
    return {"x": random.standard_normal((4, 8), np.float32), "y": random.standard_normal((4, 1), np.float32)}


def sums_have_the_hosts_bits(xp):
    """Collective: whether sums in rank order, made on the devices, are those of the host, for every type and wire."""
    comm = cluster.current().role_comm.Dup()
    return all(_summed(comm, xp, dtype, is_aware) for dtype in (np.float16, np.float32, np.float64)
               for is_aware in ((False, True) if os.environ.get("FLEET_MPI_CUDA_AWARE") == "yes" else (False,)))


def _summed(comm, xp, dtype, is_aware):
    def part(rank):
        random = np.random.default_rng(rank)
        return (random.standard_normal(LENGTH) * 10.0 ** random.integers(-3, 4, LENGTH)).astype(dtype)
    array, expected = xp.asarray(part(comm.rank)), np.empty(LENGTH, dtype)
    reduction = DeviceExactAllReduce(MPITransport(comm), range(comm.size), xp, is_aware).start(array)
    while not reduction.is_over():
        reduction.advance()
    add_in_order([part(rank) for rank in range(comm.size)], expected)
    return xp.asnumpy(array).tobytes() == expected.tobytes()


if __name__ == "__main__":
    sys.exit(main())
