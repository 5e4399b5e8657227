"""A training script in which one rank does what it is asked to: ``faulty.py RANK MOMENT FAULT [STEPS]``.

Code as users write it, with fleet's 1.x calls. The moments are the places where ``at`` is called. In the tests rank 0
serves and the others work (FLEET_MPI_SERVERS=1).
"""

import os
import signal
import sys
import threading
import time

import numpy as np

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "-1")))
CHOSEN, MOMENT, FAULT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
STEPS = int(sys.argv[4]) if len(sys.argv) > 4 else 10
IS_IT = RANK == CHOSEN


def fail():
    """An error of the script."""
    raise ValueError("asked to fail")


def leave():
    """As scripts do that know of sys.exit."""
    raise SystemExit(3)


def fail_in_a_thread():
    """The main thread goes on for long."""
    threading.Thread(target=fail).start()
    time.sleep(100)


FAULTS = {
    "nothing": lambda: None,
    "raise": fail,
    "thread": fail_in_a_thread,
    "SystemExit(3)": leave,
    "sys.exit(3)": lambda: sys.exit(3),
    "exit(3)": lambda: exit(3),
    "sys.exit(0)": lambda: sys.exit(0),
    "exit(0)": lambda: exit(0),
    "os._exit(0)": lambda: os._exit(0),
    "sleep": lambda: time.sleep(1000),
    "nap": lambda: time.sleep(4),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


def at(moment):
    """Do it here, if this is the rank and the moment."""
    if IS_IT and moment == MOMENT:
        sys.stdout.write(f"at {time.time()}\n")
        FAULTS[FAULT]()


def while_serving(number, frame):
    """In the middle of what the main thread does, once the server has made five updates."""
    if cluster.current().progress() >= 5:
        signal.setitimer(signal.ITIMER_REAL, 0)
        at("serving")


def note_idleness(number, frame):
    """Keep when, and how much CPU time was used until then."""
    SAMPLES.append((time.monotonic(), time.process_time()))


def idleness():
    """The least share of a core that was used within two seconds."""
    return min((cpu - before_cpu) / (now - before) for before, before_cpu in SAMPLES for now, cpu in SAMPLES
               if now - before >= 2)


SAMPLES = []
at("start")

from fleet_mpi import cluster, fluid  # noqa: E402
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet  # noqa: E402

at("before init")
if IS_IT and MOMENT == "another version":
    from fleet_mpi.ranks import roster
    roster.describe = lambda *args, describe=roster.describe: describe(*args)._replace(version="0.0.1")
fleet.init()
at("after init")
different = MOMENT if IS_IT else ""
x = fluid.layers.data(name="x", shape=[4], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
hidden = fluid.layers.fc(x, size=7 if different == "another layer" else 6)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, size=1), y))
config = fluid.DistributeTranspilerConfig()
config.sync_mode = different != "another mode"
optimizer = fluid.optimizer.Momentum(0.01, 0.9) if different == "another optimizer" else fluid.optimizer.SGD(0.01)
fleet.distributed_optimizer(optimizer, config).minimize(loss)
at("after minimize")
if fleet.is_server():
    if MOMENT == "connecting":
        time.sleep(0.5)
    fleet.init_server()
    if FAULT == "nap" or IS_IT and MOMENT == "serving":
        signal.signal(signal.SIGALRM, note_idleness if FAULT == "nap" else while_serving)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    fleet.run_server()
    signal.setitimer(signal.ITIMER_REAL, 0)
    if FAULT == "nap":
        sys.stdout.write(f"idle: {idleness():.4f}\n")
    at("after serving")
else:
    if IS_IT and MOMENT == "connecting":
        signal.signal(signal.SIGALRM, lambda number, frame: at("connecting"))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for step in range(STEPS):
        at(f"step {step}")
        values = np.full((2, 4), 1.0 + RANK, "float32")
        exe.run(fleet.main_program, feed={"x": values, "y": values[:, :1]}, fetch_list=[loss])
    if MOMENT != "no goodbye":
        fleet.stop_worker()
    at("after stop")
sys.stdout.write("came to the end\n")
