"""A training script as users write it, in which one rank does what ``hooks/injection.py`` is told.

FAULTS_MODE is how it trains: a mode of parameter servers with 1.x's fleet, or a way to sum gradients (exact, fast) with
2.x's. Worker 0 saves once. The fault's places are the calls of ``at``, and those in ``injection`` itself.
"""

import os
import signal
import sys

from injection import FOLDER, IS_IT, PHASE, STEP, at, note, until, watch_finalize, watch_saving

at("start")

import numpy as np  # noqa: E402

import fleet_mpi.paddle as paddle  # noqa: E402
from fleet_mpi import cluster, fluid  # noqa: E402
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as served  # noqa: E402
from fleet_mpi.paddle.distributed import fleet as equals  # noqa: E402

MODE = os.environ["FAULTS_MODE"]
STEPS = int(os.environ["FAULTS_STEPS"])
SAVED = os.path.join(FOLDER, "saved")
SAVES_AT = 10
ALONE_AT = 8   # steps of the one worker that is left; the others make half of them


def loss_of_model():
    """Two layers."""
    x = fluid.layers.data(name="x", shape=[4], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    hidden = fluid.layers.fc(x, size=6)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, size=1), y))


def config():
    """The options of the mode."""
    made = fluid.DistributeTranspilerConfig()
    made.sync_mode = MODE == "sync"
    made.runtime_split_send_recv = MODE == "async"
    made.half_async = MODE == "half_async"
    made.enable_dc_asgd = MODE == "delay_compensated"
    if MODE == "geo":
        made.geo_sgd_mode, made.geo_sgd_need_push_nums = True, 5
    if MODE == "bounded_staleness":
        made.staleness = 4
    return made


def train(exe, program, loss, worker, save):
    """This worker's steps, with worker 0's save in the middle."""
    values = np.full((2, 4), 1.0 + worker, "float32")
    steps = ALONE_AT // 2 if PHASE == "alone" and not IS_IT else STEPS
    for step in range(steps):
        at_step(step)
        if step == SAVES_AT and worker == 0:
            note("saving")
            save(SAVED)
        exe.run(program, feed={"x": values, "y": values[:, :1]}, fetch_list=[loss])


def at_step(step):
    """The places of the fault in a worker."""
    if step == 0:
        at("first step")
    if step == STEP:
        at("step")
    if step == ALONE_AT:
        at("alone")
    if step == SAVES_AT and cluster.current().index > 0 and IS_IT and PHASE == "save":
        until("saving")
        at("save")


def while_serving(number, frame):
    """The places of the fault in a server, in the middle of what its main thread does."""
    updates = cluster.current().progress()
    if updates >= 1:
        at("first step")
    if updates >= STEP:
        at("step")
    if os.path.exists(os.path.join(FOLDER, "saving")):
        at("save")


def serve():
    """A server's part."""
    served.init_server()
    if IS_IT:
        signal.signal(signal.SIGALRM, while_serving)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    served.run_server()
    signal.setitimer(signal.ITIMER_REAL, 0)


def with_servers():
    """1.x's fleet."""
    served.init()
    watch_finalize()
    loss = loss_of_model()
    served.distributed_optimizer(fluid.optimizer.Momentum(0.01, 0.9), config()).minimize(loss)
    if served.is_server():
        return serve()
    served.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(served.startup_program)
    train(exe, served.main_program, loss, served.worker_index(), lambda folder: served.save_persistables(exe, folder))
    served.stop_worker()


def collective():
    """2.x's fleet."""
    paddle.enable_static()
    equals.init(is_collective=True)
    watch_finalize()
    loss = loss_of_model()
    equals.distributed_optimizer(fluid.optimizer.Momentum(0.01, 0.9), equals.DistributedStrategy()).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    train(exe, fluid.default_main_program(), loss, equals.worker_index(), lambda folder: equals.save_persistables(exe, folder))


if PHASE == "save":
    watch_saving(SAVED)
collective() if MODE in ("exact", "fast") else with_servers()
at("end")
sys.stdout.write("came to the end\n")
