"""Workers whose place is a device, over loopback: the strict stand-in through executor, exchange, servers and back.

The stand-in runs the plain kernels, the host the compiled ones, which agree to the bit or to rounding.
"""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.program.engine import places
from fleet_mpi.testing import DeviceArray, device
from tests.exact import cells
from tests.exact.cells import CELLS, Cell, Layout
from tests.exact.spread import over_loopback
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
    original = device.asnumpy
    monkeypatch.setattr(device, "asnumpy", lambda a: seen.append(a.shape) or original(a))
    on_devices(monkeypatch, CELLS["sgd"], Layout(1, 1, "RoundRobin", True))
    assert seen, "the program ran on the host"
