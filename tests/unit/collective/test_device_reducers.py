"""Which way gradients on a device go, by the setting, MPI's awareness and the variant."""

import types

import numpy as np
import pytest

from fleet_mpi import notices, settings
from fleet_mpi.collective.device_reducers import reducers_for
from fleet_mpi.collective.staging import StagedAllReduce
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.testing import device

MADE = [object(), object()]


def group(index=0):
    return types.SimpleNamespace(index=index, size=2, lanes=[None, None])


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(notices, "log",
                        lambda: types.SimpleNamespace(info=lambda text, *words: lines.append(text % words)))
    return lines


@pytest.mark.parametrize("chosen", ("exact", "fast"))
def test_host_arrays_need_nothing(chosen, said):
    assert reducers_for(np, chosen, MADE, group()) is MADE and not said


@pytest.mark.parametrize("chosen, setting, is_aware, line", (
    ("fast", "yes", True, "straight from its memory (FLEET_MPI_CUDA_AWARE=yes)"),
    ("fast", "no", False, "through pinned host memory (FLEET_MPI_CUDA_AWARE=no)"),
    ("exact", "yes", False, "through pinned host memory (exact sums are added up on the host)")))
def test_device_arrays_go_to_an_aware_mpi_or_through_the_host(chosen, setting, is_aware, line, said):
    with settings.override(FLEET_MPI_CUDA_AWARE=setting):
        found = reducers_for(device, chosen, MADE, group())
    assert all(isinstance(one, StagedAllReduce) and one.is_aware is is_aware for one in found)
    assert [one.inner for one in found] == MADE
    assert said == [f"gradients on the device go to MPI {line}"]


def test_one_worker_says_it_for_all(said):
    with settings.override(FLEET_MPI_CUDA_AWARE="no"):
        reducers_for(device, "fast", MADE, group(index=1))
    assert not said


@pytest.mark.parametrize("xp", (np, device))
def test_nccl_where_it_is_not_is_refused(xp):
    with pytest.raises(EnvironmentProblem, match="FLEET_MPI_ALLREDUCE=nccl"):
        reducers_for(xp, "nccl", MADE, group())
