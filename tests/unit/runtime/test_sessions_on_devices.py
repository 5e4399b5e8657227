"""Workers whose place is a device, over loopback: the strict stand-in through executor, exchange, servers and back.

The stand-in runs the plain kernels, the host the compiled ones, which agree to the bit or to rounding.
"""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.arrays import to_module
from fleet_mpi.program.engine import places
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.engine.transfers import Transfers
from fleet_mpi.runtime import sessions
from fleet_mpi.runtime.device_copies import Downloads
from fleet_mpi.testing import DeviceArray, device
from tests.exact import cells
from tests.exact.cells import CELLS, Cell, Layout, feed_of
from tests.exact.spread import Spread, over_loopback
from tests.unit.program.ops.checking import StandInPlace


def on_devices(monkeypatch, cell, layout):
    """The state after training with every worker on a device."""
    with monkeypatch.context() as patched:
        patched.setattr(places, "_chosen", StandInPlace())
        return over_loopback(cell, layout)[0]


def assert_close(got, expected):
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(host(got[name]), host(array), rtol=1e-4, atol=1e-5, err_msg=name)


def host(array):
    return array.get() if isinstance(array, DeviceArray) else array


@pytest.mark.parametrize("name", ("sgd", "adam", "batch norm, dropout", "rows, adam", "clip by global norm",
                                  "schedule warm-up", "uneven data"))
def test_a_synchronous_worker_on_a_device_comes_to_the_same_parameters(name, monkeypatch):
    layout = Layout(2, 2, "RoundRobin", True)
    assert_close(on_devices(monkeypatch, CELLS[name], layout), over_loopback(CELLS[name], layout)[0])


@pytest.mark.parametrize("options", (
    dict(sync_mode=False), dict(sync_mode=False, enable_dc_asgd=True), dict(sync_mode=False, staleness=2),
    dict(sync_mode=False, runtime_split_send_recv=True),
    dict(sync_mode=False, geo_sgd_mode=True, geo_sgd_need_push_nums=3)))
@pytest.mark.parametrize("kind", ("dense", "rows"))
def test_every_mode_trains_workers_on_devices(kind, options, monkeypatch):
    cell = Cell(kind, getattr(cells, kind), lambda: fluid.optimizer.SGD(0.01), {}, steps=7)
    layout = Layout(1, 2, "RoundRobin", True, options)
    got, expected = on_devices(monkeypatch, cell, layout), over_loopback(cell, layout)[0]
    assert got.keys() == expected.keys() and all(np.isfinite(host(one)).all() for one in got.values())
    if options.get("geo_sgd_mode"):  # with one worker nobody else's steps come in between
        assert_close(got, expected)


def test_parameters_and_gradients_of_the_worker_are_on_its_device(monkeypatch):
    seen = []
    original = Downloads.begin
    monkeypatch.setattr(Downloads, "begin", lambda self, array, host: seen.append(type(array)) or original(self, array,
                                                                                                       host))
    on_devices(monkeypatch, CELLS["sgd"], Layout(1, 1, "RoundRobin", True))
    assert seen and set(seen) == {DeviceArray}, "the program ran on the host"

def sessions_of(cell_name):
    """(session on the host, session on a device) of the same cell, both after the startup program."""
    def begin(place):
        spread = Spread(CELLS[cell_name], Layout(1, 2, "RoundRobin", True))
        scopes = [sessions.started_scope(spread.distribution, index) for index in range(2)]
        scope = Scope()
        session = sessions.connect(spread.distribution, scope, sessions.embedded(spread.distribution, scopes))
        Executor(place).run(spread.made.startup, scope=scope)
        return session
    return begin(CPUPlace()), begin(StandInPlace())


def push(session, step):
    """End a step whose gradients are numbers of our own."""
    rng = np.random.default_rng(step)
    for name in session.grads:
        array = session.scope.array(name)
        array[...] = to_module(rng.normal(size=array.shape).astype(array.dtype), session.xp)
    session.exchange()


@pytest.mark.parametrize("name", ("sgd", "adam", "clip by global norm"))
def test_the_same_gradients_lead_to_the_same_bits(name):
    on_host, on_device = sessions_of(name)
    for step in range(3):
        push(on_host, step)
        push(on_device, step)
        for one in on_host.params:
            assert type(on_device.scope.array(one)) is DeviceArray
            assert host(on_device.scope.array(one)).tobytes() == on_host.scope.array(one).tobytes(), one


def test_a_program_on_the_host_may_come_between():
    on_host, on_device = sessions_of("sgd")
    for session in on_host, on_device:
        push(session, 0)
        name = next(iter(session.params))
        session.scope.var(name).put(np.array(host(session.scope.array(name))) + 1)  # an executor on a CPUPlace puts so
        session.move_to(session.xp)
        assert session.scope.array(name) is session.params[name]
    on_device.move_to(np)
    assert host(on_device.scope.array(name)).tobytes() == on_host.scope.array(name).tobytes()
    push(on_host, 1)
    push(on_device, 1)
    assert on_device.scope.array(name).tobytes() == on_host.scope.array(name).tobytes()


@pytest.mark.parametrize("name, most", (("sgd", 1), ("rows, adam", 1)))
def test_a_step_waits_once_for_its_gradients_and_never_for_parameters(name, most, monkeypatch):
    waits, wait, asnumpy, bring = [], Downloads.wait, device.asnumpy, Transfers.bring
    spread = Spread(CELLS[name], Layout(1, 2, "RoundRobin", True))
    scopes = [sessions.started_scope(spread.distribution, index) for index in range(2)]
    scope, executor = Scope(), Executor(StandInPlace())
    sessions.connect(spread.distribution, scope, sessions.embedded(spread.distribution, scopes))
    executor.run(spread.made.startup, scope=scope)
    for step in range(2):
        if step:
            monkeypatch.setattr(Downloads, "wait", lambda self: waits.append("gradients") or wait(self))
            monkeypatch.setattr(device, "asnumpy", lambda array: waits.append(array.shape) or asnumpy(array))
            monkeypatch.setattr(Transfers, "bring", lambda self, values: waits.append("ids") or bring(self, values))
        executor.run(spread.made.main, feed=feed_of(spread.made.main, 0, step), scope=scope)
    assert waits.count("gradients") == most and waits.count("ids") == (name == "rows, adam"), waits
    assert set(waits) <= {"gradients", "ids"}, waits
