"""A collective training script in which one rank does what it is asked to: ``faulty_collective.py RANK MOMENT FAULT [STEPS]``.

Code as users write it, with fleet's 2.x calls. The moments are the places where ``at`` is called, and some ways in which
a rank's script differs from the others' (``different``).
"""

import os
import signal
import sys
import time

import numpy as np

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "-1")))
CHOSEN, MOMENT, FAULT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
STEPS = int(sys.argv[4]) if len(sys.argv) > 4 else 10
IS_IT = RANK == CHOSEN
different = MOMENT if IS_IT else ""


def fail():
    """An error of the script."""
    raise ValueError("asked to fail")


def go_on():
    """Let an op of the next step fail, as a script's own function may, and go on as if nothing had been."""
    from fleet_mpi.collective_session import Session
    ready = Session.ready

    def fail_once(session, name):
        ready(session, name)
        Session.ready = ready
        fail()
    Session.ready = fail_once
    try:
        train()
    except ValueError:
        pass


FAULTS = {
    "nothing": lambda: None,
    "raise": fail,
    "sys.exit(3)": lambda: sys.exit(3),
    "sys.exit(0)": lambda: sys.exit(0),
    "os._exit(0)": lambda: os._exit(0),
    "sleep": lambda: time.sleep(1000),
    "nap": lambda: time.sleep(4),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "barrier": lambda: fleet.barrier_worker(),
    "go on": go_on,
}


def at(moment):
    """Do it here, if this is the rank and the moment."""
    if IS_IT and moment == MOMENT:
        sys.stdout.write(f"at {time.time()}\n")
        FAULTS[FAULT]()


if different == "another variant":
    os.environ["FLEET_MPI_ALLREDUCE"] = "fast"

import fleet_mpi.paddle as paddle  # noqa: E402
from fleet_mpi import fluid, settings  # noqa: E402
from fleet_mpi.paddle.distributed import fleet  # noqa: E402

paddle.enable_static()
fleet.init(is_collective=True)
if "DEADLINE_MS" in os.environ:
    # From here on only: with more ranks than cores the start of MPI may take longer than a stall is to be waited for.
    settings.put("FLAGS_rpc_deadline", int(os.environ["DEADLINE_MS"]))
at("after init")
x = fluid.data("x", [None, 4])
y = fluid.data("y", [None, 1])
hidden = fluid.layers.fc(x, 7 if different == "another layer" else 6)
if os.environ.get("ROWS"):
    ids = fluid.data("ids", [None, 1], "int64")
    hidden = hidden + fluid.layers.embedding(ids, [20, 6], is_sparse=True)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
strategy = fleet.DistributedStrategy()
strategy.fuse_grad_size_in_MB = 16 if different == "another size" else 32
optimizer = fluid.optimizer.SGD(0.01)
fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
at("after minimize")
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
at("after startup")


def train():
    """One step."""
    values = np.full((2, 4), 1.0 + RANK, "float32")
    feed = {"x": values, "y": values[:, :1], "ids": np.array([[RANK], [3]])}
    exe.run(feed={name: feed[name] for name in feed if fluid.default_main_program().global_block().has_var(name)},
            fetch_list=[loss])


for step in range(STEPS - 2 * (different == "fewer steps")):
    at(f"step {step}")
    train()
at("after training")
if different == "only worker" or MOMENT == "all gather":
    fleet.util.all_gather(RANK)
sys.stdout.write("came to the end\n")
