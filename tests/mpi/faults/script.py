"""A training script as users write it, in which one rank does what ``hooks/injection.py`` is told.

FAULTS_MODE is how it trains: a mode of parameter servers with 1.x's fleet, or a way to sum gradients (exact, fast) with
2.x's. ``hooks/places.py`` says where faults happen.
"""

import os
import signal
import sys
import time

import injection
from injection import IS_IT, PHASE, RANK, at

at("start")

MODE = os.environ["FAULTS_MODE"]
if PHASE == "another variant" and IS_IT:
    os.environ["FLEET_MPI_ALLREDUCE"] = "fast"

import numpy as np  # noqa: E402

import fleet_mpi.paddle as paddle  # noqa: E402
from fleet_mpi import fluid  # noqa: E402
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as served  # noqa: E402
from fleet_mpi.paddle.distributed import fleet as equals  # noqa: E402

from places import DIFFERENT, begin, idleness, train, watch_server  # noqa: E402  isort: skip


def loss_of_model():
    """Two layers, and an embedding where that is asked for."""
    x = fluid.layers.data(name="x", shape=[4], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    hidden = fluid.layers.fc(x, size=7 if DIFFERENT == "another layer" else 6)
    if "FAULTS_ROWS" in os.environ:
        ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
        hidden = hidden + fluid.layers.embedding(ids, [20, 6], is_sparse=True)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, size=1), y))


def optimizer():
    """The same on all ranks, but for one."""
    return fluid.optimizer.Momentum(0.01, 0.9) if DIFFERENT == "another optimizer" else fluid.optimizer.SGD(0.01)


def config():
    """The options of the mode."""
    made = fluid.DistributeTranspilerConfig()
    made.sync_mode = MODE == "sync" and DIFFERENT != "another mode"
    made.runtime_split_send_recv = MODE == "async"
    made.half_async = MODE == "half_async"
    made.enable_dc_asgd = MODE == "delay_compensated"
    if MODE == "geo":
        made.geo_sgd_mode, made.geo_sgd_need_push_nums = True, 5
    if MODE == "bounded_staleness":
        made.staleness = 4
    return made


def stepper(exe, program, loss):
    """A function that makes one step."""
    values = np.full((2, 4), 1.0 + int(RANK), "float32")
    feed = {"x": values, "y": values[:, :1]}
    if "FAULTS_ROWS" in os.environ:
        feed["ids"] = np.array([[int(RANK)], [3]])
    return lambda: exe.run(program, feed=feed, fetch_list=[loss])


def serve():
    """A server's part."""
    if PHASE == "connecting":
        time.sleep(0.5)
    served.init_server()
    watch_server()
    served.run_server()
    signal.setitimer(signal.ITIMER_REAL, 0)
    if injection.FAULT == "nap":
        sys.stdout.write(f"idle: {idleness():.4f}\n")


def with_servers():
    """1.x's fleet."""
    served.init()
    begin()
    loss = loss_of_model()
    served.distributed_optimizer(optimizer(), config()).minimize(loss)
    at("after minimize")
    if served.is_server():
        return serve()
    if DIFFERENT == "connecting":
        signal.signal(signal.SIGALRM, lambda number, frame: at("connecting"))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
    served.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(served.startup_program)
    train(stepper(exe, served.main_program, loss), lambda folder: served.save_persistables(exe, folder))
    if PHASE != "no goodbye":
        served.stop_worker()


def collective():
    """2.x's fleet."""
    paddle.enable_static()
    equals.init(is_collective=True)
    begin()
    loss = loss_of_model()
    strategy = equals.DistributedStrategy()
    strategy.fuse_grad_size_in_MB = 16 if DIFFERENT == "another size" else 32
    equals.distributed_optimizer(optimizer(), strategy).minimize(loss)
    at("after minimize")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    at("after startup")
    step = stepper(exe, fluid.default_main_program(), loss)
    injection.FAULTS.update({"barrier": equals.barrier_worker, "go on": lambda: go_on(step)})
    train(step, lambda folder: equals.save_persistables(exe, folder))
    if DIFFERENT == "only worker":
        equals.util.all_gather(int(RANK))


def go_on(step):
    """Let an op of the next step fail, as a script's own function may, and go on as if nothing had been."""
    from fleet_mpi.runtime import collective_sessions
    session = collective_sessions.session_of(fluid.global_scope())
    ready = session.ready

    def fail_once(name):
        ready(name)
        injection.fail()
    session.ready = fail_once
    fluid.default_main_program().touch()  # plans are bound to what they call
    try:
        step()
    except ValueError:
        pass


if DIFFERENT == "another version":
    from fleet_mpi.ranks import roster
    roster.describe = lambda *args, describe=roster.describe: describe(*args)._replace(version="0.0.1")
at("before init")
collective() if MODE in ("exact", "fast", "") else with_servers()
at("end")
sys.stdout.write("came to the end\n")
