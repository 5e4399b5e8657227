"""Collective training with every worker on a device, over loopback: the strict stand-in through buckets and staging.

The stand-in runs the plain kernels, the host the compiled ones, which agree to the bit or to rounding.
"""

import ctypes
import threading

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective import device_reducers
from fleet_mpi.collective.choosing import Options
from fleet_mpi.collective.exact_on_devices import DeviceExactAllReduce
from fleet_mpi.collective.group import Group
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime import collective_sessions
from fleet_mpi.testing import DeviceArray, device, stand_in
from fleet_mpi.transpile.collective import plan_of, rewrite
from fleet_mpi.wire.loopback import Network
from tests.exact.cells import CELLS, built, feed_of
from tests.unit.program.building import from_scratch
from tests.unit.program.ops.checking import StandInPlace

SMALL = 0.001  # MB: several buckets even for small models


class Worker:
    """One worker of a collective job, as a thread."""

    def __init__(self, cell, index, lanes, workers, options):
        with from_scratch():
            self.made = built(cell)
        self.cell, self.index, self.scope = cell, index, Scope()
        self.plan = plan_of(self.made.main, workers, index, options)
        rewrite(self.made.main, self.made.startup, self.plan)
        self.group = Group(index, lanes, workers, "worker {}".format)
        self.state = self.session = None

    def train(self, startup_place, place):
        self.session = collective_sessions.connect(self.plan, self.scope, self.group)
        starting, executor = Executor(startup_place), Executor(place)
        starting.worker = executor.worker = self.index
        starting.run(self.made.startup, scope=self.scope)
        for step in range(self.cell.steps):
            executor.run(self.made.main, feed=feed_of(self.made.main, self.index, step), fetch_list=[self.made.loss],
                         scope=self.scope)
        names = [one.name for one in self.made.main.all_parameters()]
        self.state = {name: self.scope.array(name) for name in names}


def train(name, place, startup_place=None, workers=2, options=None, wanted="exact"):
    """The workers after training, with FLEET_MPI_ALLREDUCE as ``wanted``."""
    network = Network()
    made = [Worker(CELLS[name], index, [network.transport(index)], workers,
                   options or Options(fuse_mb=SMALL, last_mb=SMALL)) for index in range(workers)]
    failures = []

    def run(worker):
        try:
            worker.train(startup_place or place, place)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=run, args=(worker,)) for worker in made]
    with settings.override(FLEET_MPI_ALLREDUCE=wanted):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return made


def host(array):
    return array.get() if isinstance(array, DeviceArray) else array


def assert_close(workers, others, atol=1e-5):
    for one, other in zip(workers, others, strict=True):
        assert one.state.keys() == other.state.keys()
        for name in one.state:
            np.testing.assert_allclose(host(one.state[name]), host(other.state[name]), rtol=1e-4, atol=atol,
                                       err_msg=name)


@pytest.mark.parametrize("name", ("sgd", "adam", "batch norm, dropout", "rows, adam"))
def test_workers_on_devices_come_to_the_same_parameters(name):
    on_devices, on_hosts = train(name, StandInPlace()), train(name, CPUPlace())
    assert_close(on_devices, on_hosts)
    assert all(isinstance(array, DeviceArray) for array in on_devices[0].state.values())
    assert all(isinstance(one, DeviceExactAllReduce) for one in on_devices[0].session.reducers)
    if "batch norm" not in name:  # whose statistics are each worker's own
        for key, array in on_devices[0].state.items():
            assert host(array).tobytes() == host(on_devices[1].state[key]).tobytes()


def test_gradients_lie_in_their_buckets_on_the_device():
    session = train("sgd", StandInPlace())[0].session
    assert len(session.flat.lines) > 1 and session.xp is device
    for name, view in session.flat.views.items():
        assert session.scope.array(name) is view and isinstance(view, DeviceArray)


def test_values_made_on_the_host_may_be_trained_on_a_device():
    assert_close(train("sgd", StandInPlace(), startup_place=CPUPlace()), train("sgd", CPUPlace()))


def test_gradients_may_travel_as_halves():
    options = Options(fuse_mb=SMALL, last_mb=SMALL, half=True)
    # Real cupy's gradients differ in their last bits, so a few are rounded to neighbouring halves.
    atol = 1e-5 if device is stand_in.device else 1e-4
    assert_close(train("sgd", StandInPlace(), options=options), train("sgd", CPUPlace(), options=options), atol)


class Nccl:
    """NCCL as cupy has it, between threads: the stream that reaches a sum waits for all ranks."""

    available, NCCL_SUM, NCCL_FLOAT32 = True, 0, 7

    def __init__(self, ranks, streams):
        self.barrier, self.found, self.streams, self.sums = threading.Barrier(ranks, timeout=20), {}, streams, 0
        emulated = self

        class NcclCommunicator:
            def __init__(self, size, unique_id, rank):
                assert size in (1, ranks) and unique_id == bytes(range(128))
                self.rank, self.size = rank, size

            def allReduce(self, source, target, count, kind, op, stream):
                line = np.frombuffer((ctypes.c_float * count).from_address(source), np.float32)
                if self.size > 1:  # alone a worker tries whether there is NCCL
                    emulated.streams[stream].todo.append(lambda: emulated.add_up(self.rank, line))

            def check_async_error(self):
                pass

            def abort(self):
                pass
        self.NcclCommunicator = NcclCommunicator

    def get_unique_id(self):
        return bytes(range(128))

    def add_up(self, rank, line):
        self.found[rank] = line.copy()
        self.barrier.wait()
        total = self.found[0]
        for number in range(1, self.barrier.parties):
            total = total + self.found[number]
        self.barrier.wait()  # everybody has read, before one comes with its next part
        line[...] = total
        self.sums += rank == 0


@pytest.mark.parametrize("wanted", ("", "nccl"))
def test_nccl_sums_where_it_is_there(wanted, monkeypatch):
    streams, make = {}, device.cuda.Stream

    def noted(**options):
        stream = make(**options)
        streams[stream.ptr] = stream
        return stream
    nccl = Nccl(2, streams)
    monkeypatch.setattr(device.cuda, "Stream", noted)
    monkeypatch.setattr(device.cuda, "nccl", nccl, raising=False)
    monkeypatch.setattr(device_reducers, "address", lambda xp: threading.current_thread().name)
    workers = train("sgd", StandInPlace(), wanted=wanted)
    assert_close(workers, train("sgd", CPUPlace()))
    assert nccl.sums == CELLS["sgd"].steps * len(workers[0].plan.buckets)


def test_nccl_is_refused_without_it():
    with pytest.raises(EnvironmentProblem, match="FLEET_MPI_ALLREDUCE=nccl: worker 0: cupy finds no NCCL"):
        train("sgd", StandInPlace(), wanted="nccl")
