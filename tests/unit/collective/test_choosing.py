"""Which way sums take: by the setting, by where arrays lie, and by what all workers can; said in one line."""

import types

import numpy as np
import pytest

from fleet_mpi import notices, settings
from fleet_mpi.collective import choosing, device_reducers
from fleet_mpi.collective.by_node import ByNodeAllReduce
from fleet_mpi.collective.choosing import Options, choose
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.exact_on_devices import DeviceExactAllReduce
from fleet_mpi.collective.half import HalfAllReduce
from fleet_mpi.collective.staging import StagedAllReduce
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.testing import device
from tests.unit.collective.test_device_reducers import groups, on_every


@pytest.fixture
def said(monkeypatch):
    """What is said at start, from the word all-reduce on."""
    lines = []
    monkeypatch.setattr(notices, "log",
                        lambda: types.SimpleNamespace(info=lambda text, *words: lines.append(text % words)))
    return lines


class ByNccl:
    """What NCCL would do."""


@pytest.fixture
def world(monkeypatch):
    """NCCL works, workers have devices of their own, MPI is as the setting says; what may be changed."""
    numbers, state = iter(range(1000)), types.SimpleNamespace(no_nccl="", beginning="", one_device=False)

    def reducers(group, xp):
        if state.beginning:
            raise EnvironmentProblem(state.beginning)
        return [ByNccl()]
    monkeypatch.setattr(device_reducers.nccl_backend, "why_not", lambda xp: state.no_nccl)
    monkeypatch.setattr(device_reducers, "address", lambda xp: "0:0" if state.one_device else f"0:{next(numbers)}")
    monkeypatch.setattr(device_reducers, "nccl_reducers", reducers)
    monkeypatch.setattr(device_reducers, "library_reducers", lambda group, is_aware: [("fast", is_aware)])
    return state


def chosen(xp=device, size=2, wanted="", aware="no", hosts=None, **options):
    """The reducers of all workers; ``xp`` is that of all, or a function of the worker's number."""
    plan = types.SimpleNamespace(options=Options(**options), gradients=["w"], buckets=[0])

    def ask(group):
        try:
            return choose(plan, group, xp(group.index) if isinstance(xp, types.FunctionType) else xp)
        except EnvironmentProblem as error:
            return error
    with settings.override(FLEET_MPI_ALLREDUCE=wanted, FLEET_MPI_CUDA_AWARE=aware):
        found = on_every(groups(size, hosts), ask)
    assert len({str(type(one[0])) if isinstance(one, list) else str(one) for one in found}) == 1, found
    return found[0]


def test_hosts_sum_in_rank_order_up_to_eight(said):
    assert type(chosen(np)[0]) is ExactAllReduce
    assert said[0].startswith("all-reduce: exact (in rank order), 2 workers. Find all_reduce operators: 1.")


def test_devices_sum_by_nccl_where_all_can(world, said):
    assert isinstance(chosen()[0], ByNccl)
    assert len(said) == 1 and said[0].startswith("all-reduce: nccl (in NCCL's order, from device to device), 2 workers")


@pytest.mark.parametrize("aware", ("yes", "no"))
def test_without_nccl_the_mpi_library_sums(aware, world, said):
    world.no_nccl = "cupy finds no NCCL"
    assert chosen(aware=aware) == [("fast", aware == "yes")]
    path = "straight from device" if aware == "yes" else "through pinned host"
    assert said[0].startswith(f"all-reduce: fast (in the library's order, {path} memory: FLEET_MPI_CUDA_AWARE={aware}; "
                              f"not by NCCL: worker 0: cupy finds no NCCL), 2 workers.")


def test_two_workers_on_one_device_do_without_nccl(world, said):
    world.one_device = True
    assert chosen() == [("fast", False)]
    assert "not by NCCL: workers 0 and 1 use one device (0:0 of here)" in said[0]


def test_an_nccl_that_does_not_begin_is_done_without(world, said):
    world.beginning = "worker 1: NCCL did not begin: no route"
    assert chosen() == [("fast", False)] and "not by NCCL: worker 1: NCCL did not begin: no route" in said[0]


def test_exact_when_asked_for_is_summed_on_the_device(world, said):
    found, = chosen(wanted="exact", aware="yes")
    assert isinstance(found, DeviceExactAllReduce) and found.is_aware
    assert "exact (in rank order, straight from device memory: FLEET_MPI_CUDA_AWARE=yes), 2 workers" in said[0]


def test_exact_by_node_is_summed_on_the_host(world, said):
    found, = chosen(size=4, wanted="exact", aware="yes", hosts=["a", "a", "b", "b"], by_node=True)
    assert isinstance(found, StagedAllReduce) and isinstance(found.inner, ByNodeAllReduce)
    assert "within 2 nodes, then between them, through pinned host memory: sums by node are made on the host" in said[0]


def test_nccl_arranges_its_sums_itself(world, said):
    assert isinstance(chosen(size=4, hosts=["a", "a", "b", "b"], by_node=True)[0], ByNccl)
    assert "hierarchical all-reduce is off: NCCL arranges its sums itself" in said


def test_halves_are_summed_by_nccl_or_in_rank_order(world, said):
    assert isinstance(chosen(half=True)[0].inner, ByNccl)
    world.no_nccl = "none"
    found, = chosen(half=True)
    assert isinstance(found, HalfAllReduce) and isinstance(found.inner, DeviceExactAllReduce)


def test_nccl_when_asked_for_is_refused_where_it_is_not(world, said):
    world.no_nccl = "cupy finds no NCCL"
    assert "=nccl: worker 0: cupy finds no NCCL; or choose exact or fast" in str(chosen(wanted="nccl"))
    world.no_nccl, world.one_device = "", True
    assert "workers 0 and 1 use one device" in str(chosen(wanted="nccl"))


@pytest.mark.parametrize("xp", (np, lambda index: np if index else device))
def test_nccl_on_hosts_is_refused(xp, world, said):
    assert "expected all workers on GPUs, got worker" in str(chosen(xp, wanted="nccl"))


def test_where_some_compute_on_the_host_all_send_as_hosts_do(world, said):
    found, = chosen(lambda index: device if index else np)
    assert isinstance(found, StagedAllReduce) and isinstance(found.inner, ExactAllReduce) and not found.is_aware


def test_an_unknown_way_is_refused():
    assert "FLEET_MPI_ALLREDUCE=quick: expected exact, fast or nccl" in str(chosen(np, wanted="quick"))


def test_one_worker_needs_nothing():
    reduction, = (one.start(np.ones(1)) for one in choose(None, groups(1)[0], np))
    assert reduction.is_over() and isinstance(reduction, choosing._Alone)
