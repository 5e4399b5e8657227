"""What the workers of a job can do with arrays on devices, and the reducers that follow from it.

Workers tell each other what they find, so that all choose the same: one without NCCL makes all do without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi.collective import cuda_trial, nccl_backend
from fleet_mpi.collective.cuda_awareness import Awareness, awareness
from fleet_mpi.collective.exact_on_devices import DeviceExactAllReduce
from fleet_mpi.collective.nccl_backend import NcclAllReduce
from fleet_mpi.collective.staging import StagedAllReduce
from fleet_mpi.ranks import waiting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reducer

LONGEST_TRIAL_S = 60


class Ability(NamedTuple):
    """What one worker can do: its device (empty: its arrays are on the host), and why NCCL cannot be used there."""

    device: str
    no_nccl: str


def abilities(group: Group, xp: ModuleType, with_nccl: bool) -> list[Ability]:
    """Collective: the Ability of every worker; NCCL is looked at only if it may be used."""
    mine = Ability("", "") if xp is np else Ability(address(xp), nccl_backend.why_not(xp) if with_nccl else "not asked")
    return [Ability(*one) for one in group.gather_values(mine)]


def address(xp: ModuleType) -> str:
    """The present device as its machine knows it: numbers depend on CUDA_VISIBLE_DEVICES, which differs by rank."""
    device = xp.cuda.Device()
    try:
        return device.pci_bus_id
    except Exception:  # no such thing on some virtual machines; the number must do
        return f"device {device.id}"


def why_no_nccl(found: Sequence[Ability], hosts: Sequence[str], who: str = "worker") -> str:
    """Why the workers cannot sum by NCCL; empty where they can. The same on every worker."""
    owners: dict[tuple[str, str], int] = {}
    for number, (host, one) in enumerate(zip(hosts, found)):
        if one.no_nccl:
            return f"{who} {number}: {one.no_nccl}"
        other = owners.setdefault((host, one.device), number)
        if other != number:
            return f"{who}s {other} and {number} use one device ({one.device}{host and ' of ' + host}), and NCCL " \
                   f"needs one for each: start one rank per GPU, and let CUDAPlace() choose the rank's own"
    return ""


def agreed_awareness(group: Group, xp: ModuleType) -> Awareness:
    """Collective: whether MPI takes the buffers of all workers' devices; where a yes is in doubt, one process per
    machine tries.
    """
    mine = awareness()
    if mine.in_doubt and group.hosts.index(group.hosts[group.index]) == group.index:
        problem = cuda_trial.why_it_fails(xp.cuda.Device().id, min(LONGEST_TRIAL_S, waiting.deadline_s() / 2))
        mine = Awareness(not problem, f"{mine.reason}, {'but ' + problem if problem else 'and a trial succeeded'}")
    found = [Awareness(*one) for one in group.gather_values(mine)]
    refusing = [f"worker {number}: {one.reason}" for number, one in enumerate(found) if not one.is_aware]
    if not refusing or len(refusing) == group.size:
        return found[0]
    return Awareness(False, refusing[0])


def exact_reducers(group: Group, xp: ModuleType, is_aware: bool) -> Sequence[Reducer]:
    """Sums in rank order, made on the devices."""
    return [DeviceExactAllReduce(lane, group.ranks, xp, is_aware) for lane in group.lanes]


def library_reducers(group: Group, is_aware: bool) -> Sequence[Reducer]:
    """Collective at first: sums by the MPI library, from device memory or from pinned memory."""
    return [StagedAllReduce(one, is_aware) for one in group.library_reducers()]


def nccl_reducers(group: Group, xp: ModuleType) -> Sequence[Reducer]:
    """Collective: sums by NCCL; communicators are made once for the same devices."""
    devices = tuple(group.gather_values(address(xp)))
    if devices not in group.by_nccl:
        group.by_nccl[devices] = NcclAllReduce.of(group, xp)
    return group.by_nccl[devices]
