"""A training script as users write it, in which one rank does what ``hooks/injection.py`` is told.

FAULTS_MODE is how it trains: a mode of parameter servers with 1.x's fleet, or a way to sum gradients (exact, fast) with
2.x's. The fault's places are the calls of ``at``, and those in ``injection`` itself; some phases are no place but a
difference between one rank's script and the others' (``DIFFERENT``). In the phase "save" worker 0 saves once.
"""

import os
import signal
import sys
import time

import injection
from injection import FAULT, FOLDER, IS_IT, PHASE, RANK, STEP, at, note, until

at("start")

MODE = os.environ["FAULTS_MODE"]
STEPS = int(os.environ["FAULTS_STEPS"])
SAVED = os.path.join(FOLDER, "saved")
SAVES_AT = 10
ALONE_AT = 8    # steps of the one worker that is left; the others make half of them
FEWER = 2       # steps that one worker does not make
DIFFERENT = PHASE if IS_IT else ""
if DIFFERENT == "another variant":
    os.environ["FLEET_MPI_ALLREDUCE"] = "fast"

import numpy as np  # noqa: E402

import fleet_mpi.paddle as paddle  # noqa: E402
from fleet_mpi import fluid, settings  # noqa: E402
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as served  # noqa: E402
from fleet_mpi.paddle.distributed import fleet as equals  # noqa: E402
from fleet_mpi.ranks import cluster  # noqa: E402

SAMPLES = []


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


def train(step, save):
    """This worker's steps; ``step()`` makes one."""
    worker = cluster.current().index
    steps = ALONE_AT // 2 if PHASE == "alone" and not IS_IT else STEPS - FEWER * (DIFFERENT == "fewer steps")
    for number in range(steps):
        at_step(number)
        if PHASE == "save" and number == SAVES_AT and worker == 0:
            note("saving")
            save(SAVED)
        step()


def at_step(number):
    """The places of the fault in a worker."""
    if number == 0:
        at("first step")
    if number == STEP:
        at("step")
    if number == ALONE_AT:
        at("alone")
    if number == SAVES_AT and cluster.current().index > 0 and DIFFERENT == "save":
        until("saving")
        at("save")


def stepper(exe, program, loss):
    """A function that makes one step."""
    values = np.full((2, 4), 1.0 + int(RANK), "float32")
    feed = {"x": values, "y": values[:, :1]}
    if "FAULTS_ROWS" in os.environ:
        feed["ids"] = np.array([[int(RANK)], [3]])
    return lambda: exe.run(program, feed=feed, fetch_list=[loss])


def while_serving(number, frame):
    """The places of the fault in a server, in the middle of what its main thread does."""
    SAMPLES.append((time.monotonic(), time.process_time()))
    progress = cluster.current().progress  # a function once it serves
    updates = progress() if callable(progress) else 0
    if updates >= 1:
        at("first step")
    if updates >= STEP:
        at("step")
    if os.path.exists(os.path.join(FOLDER, "saving")):
        at("save")


def idleness():
    """The least share of a core that a server used within two seconds."""
    return min((cpu - before_cpu) / (now - before) for before, before_cpu in SAMPLES for now, cpu in SAMPLES
               if now - before >= 2)


def serve():
    """A server's part."""
    if PHASE == "connecting":
        time.sleep(0.5)
    served.init_server()
    if IS_IT or FAULT == "nap":
        signal.signal(signal.SIGALRM, while_serving)
        signal.setitimer(signal.ITIMER_REAL, *(2 * [0.1 if FAULT == "nap" else 0.01]))
    served.run_server()
    signal.setitimer(signal.ITIMER_REAL, 0)
    if FAULT == "nap":
        sys.stdout.write(f"idle: {idleness():.4f}\n")


def begin():
    """This rank has joined the job."""
    injection.watch_finalize()
    if "FAULTS_DEADLINE_MS" in os.environ:
        # From here on only: with more ranks than cores the start of MPI may take longer than a stall is to be waited
        # for.
        settings.put("FLAGS_rpc_deadline", int(os.environ["FAULTS_DEADLINE_MS"]))
    at("after init")


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


if PHASE == "save":
    injection.watch_saving(SAVED)
if DIFFERENT == "another version":
    from fleet_mpi.ranks import roster
    roster.describe = lambda *args, describe=roster.describe: describe(*args)._replace(version="0.0.1")
at("before init")
collective() if MODE in ("exact", "fast", "") else with_servers()
at("end")
sys.stdout.write("came to the end\n")
