"""A short collective training on GPUs; every rank says which device it is on and what its parameters are in the end.

Run by slurm/gpu_acceptance.sbatch, once for each way of summing. ``--amp``: products in float16, parameters in float32.
``--lose N``: rank N is killed in the middle.
"""

import argparse
import hashlib
import os
import signal
import socket
import sys

import numpy as np

from fleet_mpi import arrays, fluid, paddle
from fleet_mpi.paddle.distributed import fleet

STEPS = 6


def main():
    """Train, then tell."""
    options = parse()
    paddle.enable_static()
    fleet.init(is_collective=True)
    loss = network()
    learn = paddle.optimizer.Momentum(learning_rate=0.01, momentum=0.9)
    fleet.distributed_optimizer(learn, strategy(options.amp)).minimize(loss)
    device = paddle.distributed.ParallelEnv().device_id
    exe = paddle.static.Executor(paddle.CUDAPlace(device))
    exe.run(fluid.default_startup_program())
    rank = fleet.worker_index()
    for step in range(STEPS):
        if rank == options.lose and step == STEPS // 2:
            say(f"rank {rank} ends here")
            os.kill(os.getpid(), signal.SIGKILL)
        drawn = np.random.default_rng([rank, step]).normal(size=(16, 65)).astype("float32")
        value, = exe.run(fluid.default_main_program(), feed={"x": drawn[:, 1:], "y": drawn[:, :1]}, fetch_list=[loss])
    say(f"rank {rank}, loss {value.item():.6f}, parameters {digest()} on device {socket.gethostname()} {device} "
        f"{address(device)}")


def network():
    """A perceptron of some hundred thousand parameters: several buckets' worth with small settings."""
    x = paddle.static.data(name="x", shape=[None, 64], dtype="float32")
    y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
    hidden = fluid.layers.fc(fluid.layers.fc(x, size=512, act="relu"), size=512, act="relu")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, size=1), y))


def strategy(with_amp):
    """How to train; the scale that is the default would skip the first steps, too large for these gradients."""
    told = fleet.DistributedStrategy()
    if with_amp:
        told.amp, told.amp_configs = True, {"init_loss_scaling": 8.0}
    return told


def digest():
    """One number for all parameters, which must lie on a device in float32."""
    found = [fluid.global_scope().array(one.name) for one in fluid.default_main_program().all_parameters()]
    assert not any(map(arrays.is_host, found)), "the parameters lie on the host"
    assert {one.dtype.name for one in found} == {"float32"}, "the parameters are no masters"
    return hashlib.sha256(b"".join(arrays.to_host(one).tobytes() for one in found)).hexdigest()[:16]


def address(device):
    """Where the device is on its machine, since ranks with equal numbers may see different ones; "" if not known."""
    runtime = arrays.cupy_module().cuda.runtime
    try:
        return runtime.deviceGetPCIBusId(device)
    except runtime.CUDARuntimeError:  # an emulated one
        return ""


def say(text):
    """One line in one go: ranks share the output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def parse():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--lose", type=int, default=-1, metavar="RANK")
    return parser.parse_args()


if __name__ == "__main__":
    main()
