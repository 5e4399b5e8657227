"""One rank of a job on devices that trains the same in every way there is to sum, one after the other.

``mpirun -np 2 python tests/gpu/ways_rank.py``. Prints one line of JSON: this rank's device, a hash of its parameters
for each way and for one process that does what all do, whether exact sums have the bits that the host sums to, and
calls of NCCL that went wrong. Rank 0's log tells the way that was taken.
"""

import hashlib
import json
import os
import sys

import numpy as np

import fleet_mpi.paddle as paddle
from fleet_mpi import arrays, fluid, settings
from fleet_mpi.collective.exact import add_in_order
from fleet_mpi.collective.exact_on_devices import DeviceExactAllReduce
from fleet_mpi.kernels.reference import update
from fleet_mpi.paddle.distributed import ParallelEnv, fleet
from fleet_mpi.ranks import cluster
from fleet_mpi.wire.mpi import MPITransport
from tests.gpu.device_jobs import WAYS
from tests.gpu.nccl_calls import wrong_calls

STEPS, RATE, MOMENTUM = 3, 0.05, 0.9
LENGTH = 100_003
# The scale that is the default is too large for these float16 gradients: the first steps would be skipped.
AMP = {"amp": True, "amp_configs": {"init_loss_scaling": 8.0}}


def main():
    """Train in all ways; returns 0."""
    paddle.enable_static()
    fleet.init(is_collective=True)
    place = paddle.CUDAPlace(ParallelEnv().device_id)
    xp = place.array_module()
    told = {"rank": fleet.worker_index(), "device": xp.cuda.Device().id, "by_place": fluid.cuda_places()[0].device_id,
            "flag": os.environ.get("FLAGS_selected_gpus", ""), "bits": sums_have_the_hosts_bits(xp),
            "wrong_calls": wrong_calls(cluster.current().role_comm.Dup(), xp), "hashes": {}, "losses": {}}
    for name, way in WAYS.items():
        with settings.override(FLEET_MPI_ALLREDUCE=way.variant, FLEET_MPI_CUDA_AWARE=way.aware):
            told["hashes"][name], told["losses"][name] = train(place, AMP if way.has_amp else {})
    told["alone"] = alone(place, fleet.worker_num())
    print(json.dumps(told), flush=True)
    return 0


def train(place, strategy):
    """Train anew: a hash of the parameters, and the losses."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss = minimized(**strategy)
        exe = paddle.static.Executor(place)
        exe.run(startup)
        losses = [float(np.asarray(exe.run(main, feed=batch(step), fetch_list=[loss])[0]).reshape(()))
                  for step in range(STEPS)]
        return digest(main), losses


def alone(place, workers):
    """What one process comes to that runs all workers' batches, sums in their order and updates on the host.

    Nothing of it is MPI's, so jobs of either MPI that come to the same have equal bits.
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        params, grads = zip(*fluid.backward.append_backward(network()))
        exe = paddle.static.Executor(place)
        exe.run(startup)
        velocities = [np.zeros(one.shape, np.float32) for one in params]
        for step in range(STEPS):
            parts = [exe.run(main, feed=batch(step, worker), fetch_list=list(grads)) for worker in range(workers)]
            for param, velocity, gradients in zip(params, velocities, zip(*parts)):
                value = fluid.global_scope().array(param.name)
                value.set(moved(value.get(), velocity, gradients))
        return digest(main)


def moved(value, velocity, gradients):
    """A parameter after the step of Momentum that the mean of these gradients asks for; the velocity is changed."""
    mean = np.empty_like(value)
    add_in_order([one.copy() for one in gradients], mean)
    mean *= np.float32(1 / len(gradients))
    update.momentum.reference(value, mean, velocity, np.full(1, RATE, np.float32), MOMENTUM, False, 0.0, 1.0)
    return value


def digest(program):
    """A hash of the parameters, which must lie on the device in float32."""
    values = [fluid.global_scope().array(name) for name in sorted(one.name for one in program.all_parameters())]
    assert not any(map(arrays.is_host, values)), "the parameters lie on the host"
    assert {one.dtype.name for one in values} == {"float32"}, "the parameters are no masters"
    return hashlib.sha256(b"".join(arrays.to_host(one).tobytes() for one in values)).hexdigest()


def network(width=16):
    """The loss of two layers."""
    x, y = fluid.data("x", [None, 8], "float32"), fluid.data("y", [None, 1], "float32")
    hidden = fluid.layers.fc(x, width, act="relu")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def minimized(width=16, **strategy):
    """The loss, to be minimized by all workers together."""
    loss, told = network(width), fleet.DistributedStrategy()
    for name, value in strategy.items():
        setattr(told, name, value)
    fleet.distributed_optimizer(paddle.optimizer.Momentum(RATE, MOMENTUM), told).minimize(loss)
    return loss


def batch(step, worker=None):
    """A worker's samples of a step; this one's unless another is named."""
    random = np.random.default_rng([fleet.worker_index() if worker is None else worker, step])
    return {"x": random.standard_normal((4, 8), np.float32), "y": random.standard_normal((4, 1), np.float32)}


def sums_have_the_hosts_bits(xp):
    """Collective: whether sums in rank order, made on the devices, are those of the host, for every type and wire."""
    comm = cluster.current().role_comm.Dup()
    return all([_summed(comm, xp, dtype, is_aware) for dtype in (np.float16, np.float32, np.float64)
                for is_aware in (False, True)])


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
