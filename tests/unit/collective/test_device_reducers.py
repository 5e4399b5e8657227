"""What workers find of their devices, and what follows for all of them."""

import threading
import types

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective import cuda_trial, device_reducers
from fleet_mpi.collective.cuda_awareness import Awareness
from fleet_mpi.collective.device_reducers import Ability, abilities, agreed_awareness, why_no_nccl
from fleet_mpi.collective.group import Group
from fleet_mpi.testing import device
from fleet_mpi.wire.loopback import Network


def groups(size, hosts=None):
    """The groups of all workers, over loopback."""
    network = Network()
    made = [Group(index, [network.transport(index)], size, "worker {}".format) for index in range(size)]
    for one in made:
        one.hosts = hosts or ["here"] * size
    return made


def on_every(made, ask):
    """What every worker gets of ``ask(group)``, each in a thread."""
    found = [None] * len(made)

    def run(group):
        found[group.index] = ask(group)
    threads = [threading.Thread(target=run, args=(one,)) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return found


def test_workers_know_what_all_of_them_can(monkeypatch):
    monkeypatch.setattr(device_reducers.nccl_backend, "why_not", lambda xp: "none here")
    found = on_every(groups(3), lambda group: abilities(group, np if group.index == 1 else device, True))
    on_device = Ability("0000:00:00.0", "none here")
    assert found == [[on_device, Ability("", ""), on_device]] * 3


def test_nccl_is_looked_at_only_if_it_may_be_used(monkeypatch):
    monkeypatch.setattr(device_reducers.nccl_backend, "why_not", None)
    assert on_every(groups(2), lambda group: abilities(group, device, False)[0].no_nccl) == ["not asked"] * 2


def test_a_device_without_an_address_is_known_by_its_number():
    class Device:
        id = 3

        @property
        def pci_bus_id(self):
            raise RuntimeError("not supported")
    assert device_reducers.address(types.SimpleNamespace(cuda=types.SimpleNamespace(Device=Device))) == "device 3"


@pytest.mark.parametrize("found, hosts, why", (
    ([("0:1", ""), ("0:2", "")], "aa", ""),
    ([("0:1", ""), ("0:1", "")], "ab", ""),
    ([("0:1", ""), ("0:1", "")], "aa", "workers 0 and 1 use one device (0:1 of a), and NCCL needs one for each: start "
                                       "one rank per GPU, and let CUDAPlace() choose the rank's own"),
    ([("0:1", ""), ("0:2", "cupy finds no NCCL")], "aa", "worker 1: cupy finds no NCCL")))
def test_nccl_needs_a_device_for_each_and_itself_everywhere(found, hosts, why):
    assert why_no_nccl([Ability(*one) for one in found], hosts) == why


@pytest.mark.parametrize("problem, is_aware, reason", (
    ("", True, "the library says yes, and a trial succeeded"),
    ("a trial was killed by SIGSEGV", False, "the library says yes, but a trial was killed by SIGSEGV")))
def test_a_yes_in_doubt_is_tried_once_on_every_machine(problem, is_aware, reason, monkeypatch):
    tried = []
    monkeypatch.setattr(device_reducers, "awareness", lambda: Awareness(True, "the library says yes", in_doubt=True))
    monkeypatch.setattr(cuda_trial, "why_it_fails", lambda number, deadline_s: tried.append(deadline_s) or problem)
    with settings.override(FLAGS_rpc_deadline=20000):
        found = on_every(groups(4, ["a", "a", "b", "b"]), lambda group: agreed_awareness(group, device))
    assert [one.is_aware for one in found] == [is_aware] * 4 and tried == [10, 10]
    assert all(one.reason in (reason, f"worker 0: {reason}") for one in found)


def test_one_worker_that_cannot_keeps_all_from_it(monkeypatch):
    says = {0: Awareness(True, "yes"), 1: Awareness(False, "FLEET_MPI_CUDA_AWARE=no")}
    numbers = threading.local()
    monkeypatch.setattr(device_reducers, "awareness", lambda: says[numbers.index])

    def ask(group):
        numbers.index = group.index
        return agreed_awareness(group, device)
    assert on_every(groups(2), ask) == [Awareness(False, "worker 1: FLEET_MPI_CUDA_AWARE=no")] * 2


def test_what_the_setting_says_is_not_tried(monkeypatch):
    monkeypatch.setattr(cuda_trial, "why_it_fails", None)
    with settings.override(FLEET_MPI_CUDA_AWARE="yes"):
        assert on_every(groups(2), lambda group: agreed_awareness(group, device).is_aware) == [True, True]
