"""How many of our files one training step leads through, and that docs/one_step.rst names exactly these, in order.

Counted with ``sys.setprofile`` over loopback: a file counts if one of its functions is called in a step, after three
steps have made plans and buffers. Left out is arithmetic (``ARITHMETIC``): what a step computes depends on the model.
"""

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fleet_mpi
from fleet_mpi import fluid
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.ranks import waiting
from fleet_mpi.runtime import sessions
from fleet_mpi.runtime.collective_sessions import connect
from fleet_mpi.transpile import collective
from fleet_mpi.wire.loopback import Loopback, Network
from tests.exact.threads_as_workers import as_workers

PACKAGE = Path(fleet_mpi.__file__).parent
WALK = PACKAGE.parent / "docs" / "one_step.rst"
ARITHMETIC = (
    "kernels/",                      # the loops themselves
    "program/ops/",                  # calls of kernels that an op's ``run`` has bound
    "program/engine/formula.py",     # elementwise ops fused to one pass
    "update_rules.py",               # the optimizers' formulas, and sums of rows with the same id
)
# The most files, both sides together.
MOST = {"sync": 14, "collective": 10, "rows": 24}
FEEDS = {"x": np.ones((4, 13), "float32"), "y": np.ones((4, 1), "float32"), "ids": np.arange(16).reshape(4, 4)}


class Counted:
    """The files in which functions were called, in the order in which they were first entered."""

    def __init__(self):
        self.files = {}

    def __enter__(self):
        sys.setprofile(self._called)
        return self

    def __exit__(self, *exc):
        sys.setprofile(None)

    def _called(self, frame, event, arg):
        if event == "call":
            self.files[frame.f_code.co_filename] = True

    def found(self):
        """Ours, by the path within the package, without arithmetic."""
        ours = [Path(one).relative_to(PACKAGE).as_posix() for one in self.files if one.startswith(f"{PACKAGE}/")]
        return [one for one in ours if not one.startswith(ARITHMETIC)]


def dense():
    """A loss of two parameters."""
    return error_of(fluid.layers.fc(fluid.layers.data("x", [13]), 1))


def rows():
    """A loss with an embedding that travels by rows."""
    ids = fluid.layers.unsqueeze(fluid.layers.data("ids", [4], dtype="int64"), [2])
    found = fluid.layers.embedding(ids, size=[300, 10], is_sparse=True)
    return error_of(fluid.layers.fc(fluid.layers.reshape(found, [-1, 40]), 1))


def error_of(prediction):
    """The mean square."""
    return fluid.layers.mean(fluid.layers.square_error_cost(prediction, fluid.layers.data("y", [1])))


def stepping(executor, loss, scope):
    """The function that runs a step, after three that have made all there is to make."""
    main = loss.block.program
    feed = {name: value for name, value in FEEDS.items() if main.global_block().has_var(name)}

    def step():
        executor.run(main, feed=feed, fetch_list=[loss], scope=scope)
    for _ in range(3):
        step()
    return step


def step_with_servers(network):
    """The files of a step of one worker and two servers, which advance while the worker waits."""
    loss = network()
    fluid.optimizer.SGD(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="a:1,b:1", trainers=1)
    job, wire, scope, executor = transpiler.distribution, Network(), Scope(), Executor()
    servers = [sessions.new_server(job, index, wire.transport(index), [2], [0, 1], sessions.started_scope(job, index))
               for index in (0, 1)]
    transport = Loopback(wire, 2, on_wait=lambda: any([one.advance() for one in servers]))
    session = sessions.connect(job, scope, sessions.Uplink(0, transport, [0, 1]))
    executor.run(fluid.default_startup_program(), scope=scope)
    step = stepping(executor, loss, scope)
    with Counted() as counted:
        step()
    assert session.steps == 4
    return counted.found()


def step_of_equals():
    """The files of a step of two workers; one comes later, so that the other waits."""
    loss = dense()
    fluid.optimizer.SGD(0.1).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    plan = collective.plan_of(main, 2, 0)
    collective.rewrite(main, startup, plan)
    waits = threading.Event()

    def work(group):
        scope, executor = Scope(), Executor()
        session = connect(plan, scope, group)
        executor.run(startup, scope=scope)
        step, lane = stepping(executor, loss, scope), session.group.lanes[0]
        if group.index:
            waits.wait()
        else:
            lane.post_receive = _telling(lane.post_receive, waits)
        with Counted() as counted:
            step()
        return counted.found()
    first, second = as_workers(2, [Network()], work)
    return list(dict.fromkeys(first + second))


def _telling(post_receive, event):
    """The same, and the other worker hears of it."""
    def told(*given):
        event.set()
        return post_receive(*given)
    return told


STEPS = {"sync": lambda: step_with_servers(dense), "rows": lambda: step_with_servers(rows),
         "collective": step_of_equals}


def walk(kind):
    """The files that a section of the walk names, in its order: its first line has the kind's name."""
    sections = re.split(r"^\S.*\n-+\n", WALK.read_text(), flags=re.MULTILINE)[1:]
    titles = re.findall(r"^(\S.*)\n-+\n", WALK.read_text(), flags=re.MULTILINE)
    text = next(section for title, section in zip(titles, sections) if kind in title.lower())
    return re.findall(r"^\d+\. ``([a-z_0-9/]+\.py)``", text, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def no_wait_is_long(monkeypatch):
    """A wait that is longer than a spin reads its deadline: on a busy machine every one is."""
    monkeypatch.setattr(waiting, "SPIN_S", 60.0)


@pytest.mark.parametrize("kind", MOST)
def test_a_step_leads_through_few_files_which_the_walk_names(kind):
    found = STEPS[kind]()
    assert len(found) <= MOST[kind], "\n".join(found)
    assert found == walk(kind)
