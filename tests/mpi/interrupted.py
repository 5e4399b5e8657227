"""A training script in which a rank is interrupted at a chosen place: ``interrupted.py RANK PLACES WAY FOLDER``.

Places: "save" and "load", while worker 0 waits for a server's answer in the middle of one; "step", while a worker waits
in an exchange; "sending", while it makes the messages of one; "serving", while a server waits. Ways: "exit" leaves with
code 0 by a signal's handler; "catch" raises there, and the script goes on; "long" sends a message that is longer than
any inbox in place of it. Rank 0 serves (FLEET_MPI_SERVERS=1).
"""

import os
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np

from fleet_mpi import fluid
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from fleet_mpi.ranks import cluster, waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.runtime import sessions
from fleet_mpi.wire.mpi import MPITransport

CHOSEN, PLACES, WAY, FOLDER = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3], sys.argv[4]
WIDTH = 600_000  # floats of a variable: its bytes come in pieces, long after they were asked for
doing = "nothing"


class Interruption(KeyboardInterrupt):
    """What the handler raises: no Exception, which is taken for a fault of the op that it came in."""


def interrupt(number, frame):
    """The signal's handler."""
    if WAY == "exit":
        sys.exit(0)
    if WAY == "catch":
        raise Interruption
    client = sessions.session_of(fluid.global_scope()).client
    client.transport.post_send(0, Channel.REQUEST, np.zeros(3 << 20, np.uint8))


def at(place):
    """Once, if this is the rank and the place."""
    if place in PLACES and cluster.current().rank == CHOSEN:
        PLACES.remove(place)
        os.kill(os.getpid(), signal.SIGALRM)


def pause(pause):
    """A pause of a wait in which nothing has come."""
    def paused(*seconds):
        at(doing)
        return pause(*seconds)
    return paused


def post_send(self, peer, channel, array, post_send=MPITransport.post_send):
    """A message on its way to a server."""
    if channel == Channel.REQUEST and doing == "step":
        at("sending")
    return post_send(self, peer, channel, array)


def guarded(what, call):
    """Call, as a script does that goes on after an interruption."""
    global doing
    doing = what
    try:
        call()
    except Interruption:
        print(f"interrupted in a {what}", flush=True)
    doing = "nothing"


def until_whole(what, call):
    """Call with numbers until it was interrupted, if it is to be, and once more; an answer that is there at once is not
    waited for. Returns the last number."""
    for number in range(100):
        is_to_be = what in PLACES and cluster.current().rank == CHOSEN
        guarded(what, lambda: call(number))
        if not is_to_be:
            return number
    raise AssertionError(f"100 {what}s, and none was waited for")


def train():
    """One step."""
    values = np.full((2, 4), 1.0 + fleet.worker_index(), "float32")
    exe.run(fleet.main_program, feed={"x": values, "y": values[:, :1]}, fetch_list=[loss])


signal.signal(signal.SIGALRM, interrupt)
waiting.os = SimpleNamespace(sched_yield=pause(os.sched_yield))
waiting.time = SimpleNamespace(sleep=pause(time.sleep), monotonic=time.monotonic)
MPITransport.post_send = post_send
fleet.init()
x = fluid.layers.data(name="x", shape=[4], dtype="float32")
y = fluid.layers.data(name="y", shape=[1], dtype="float32")
wide = fluid.layers.fc(x, size=WIDTH // 4)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(wide, size=1), y))
fleet.distributed_optimizer(fluid.optimizer.SGD(0.0)).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    doing = "serving"
    fleet.run_server()
else:
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for _ in range(3):
        guarded("step", train)
    if fleet.is_first_worker():
        last = until_whole("save", lambda number: fleet.save_persistables(exe, os.path.join(FOLDER, str(number))))
        until_whole("load",
                    lambda _: fluid.io.load_persistables(exe, os.path.join(FOLDER, str(last)), fleet.main_program))
    guarded("step", train)
    fleet.stop_worker()
print("came to the end", flush=True)
