"""Places by name: what ``set_device`` chooses."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine import places
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace, CUDAPlace


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    monkeypatch.setattr(places, "_chosen", None)


def test_an_executor_without_a_place_runs_on_the_cpu():
    assert Executor().place == CPUPlace() and places.get_device() == "cpu"


@pytest.mark.parametrize("device, place, text", (("cpu", CPUPlace(), "cpu"), ("gpu", CUDAPlace(0), "gpu:0"),
                                                 ("gpu:2", CUDAPlace(2), "gpu:2")))
def test_the_device_chosen_is_where_executors_run(device, place, text):
    assert places.set_device(device) == place
    assert Executor().place == place and places.get_device() == text
    assert Executor(CPUPlace()).place == CPUPlace()


@pytest.mark.parametrize("device", ("tpu", "cpu:0", "gpu:first", 0))
def test_unknown_devices_are_refused(device):
    with pytest.raises(UsageError, match="expected 'cpu', 'gpu' or 'gpu:0'"):
        places.set_device(device)
