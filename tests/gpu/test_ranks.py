"""Jobs of several ranks with real cupy, each rank on its own device, over the MPI that is installed."""

import functools
import os
import re

import pytest

from fleet_mpi.collective import cuda_trial
from tests.gpu.device_jobs import run_inside_on_devices, run_on_devices

both = pytest.mark.parametrize("asynchronous", (False, True), ids=("immediate", "asynchronous"))
STEPS = 3


@pytest.mark.parametrize("ranks, asynchronous", ((2, False), (2, True), (4, False)))
def test_inside_tests_on_devices_hold_with_real_cupy(ranks, asynchronous):
    ended = run_inside_on_devices(ranks, "-k", "device", asynchronous=asynchronous)
    assert ended.code == 0, ended.story()
    assert re.search(r"\d passed", ended.ranks[0].out) and "failed" not in ended.ranks[0].out, ended.story()


def test_the_trial_of_device_buffers_passes_where_mpi_can_read_them(emulation):
    assert cuda_trial.why_it_fails(0, 60) == ""


@functools.cache
def losses_of_resnet(asynchronous):
    """Rank 0's losses, which are those of all ranks: ResNet-18 has more parameters than one bucket."""
    ended = run_on_devices(2, ["-m", "fleet_mpi.examples.resnet"], "--gpu", "--steps", str(STEPS), "--batch-size", "2",
                           "--told-every", "1", "--passes", str(STEPS), asynchronous=asynchronous,
                           FLEET_MPI_STRICT_DEVICE="1", FLEET_MPI_SEED="1", FLEET_MPI_ALLREDUCE="exact")
    assert ended.code == 0, ended.story()
    assert "all-reduce: exact (in rank order, through pinned host memory" in ended.ranks[0].err, ended.story()
    return re.findall(r"^\[Epoch \d+, batch \d+\] loss: (\S+),", ended.out, re.M)


def test_resnet_trains_on_two_devices_the_same_however_late_they_work():
    losses = losses_of_resnet(asynchronous=False)
    assert len(losses) == STEPS and float(losses[-1]) < float(losses[0]), losses
    assert losses_of_resnet(asynchronous=True) == losses


@both
def test_workers_on_devices_train_with_servers_on_hosts(asynchronous):
    ended = run_on_devices(4, "wide_and_deep_on_devices.py", "--samples", "400", "--batch-size", "50",
                           "--test-samples", "100", asynchronous=asynchronous, PADDLE_PSERVER_NUM="2",
                           FLEET_MPI_STRICT_DEVICE="1", FLEET_MPI_SEED="1")
    assert ended.code == 0, ended.story()
    assert "test: auc 0." in ended.out, ended.story()
    launches = [int(count) for rank in ended.ranks for count in re.findall(r"^launches: (\d+)", rank.out, re.M)]
    if "FLEET_EMULATION" in os.environ:
        assert sorted(map(bool, launches)) == [False, False, True, True], "two serve, two compute on devices"
