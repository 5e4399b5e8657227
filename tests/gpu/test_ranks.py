"""Jobs of several ranks with real cupy, each rank on its own device, over the MPI that is installed."""

import json

import pytest

from tests.gpu.device_jobs import run_inside_on_devices, run_on_devices


def train(ranks, **settings):
    """What every rank of the collective job printed."""
    ended = run_on_devices(ranks, "collective_training.py", **settings)
    assert ended.code == 0, ended.story()
    return [json.loads(rank.out.splitlines()[-1]) for rank in ended.ranks]


@pytest.mark.parametrize("ranks", (2, 4))
def test_exact_sums_give_the_same_bits_whatever_way_they_take(ranks):
    found = [one for way in ({}, {"asynchronous": True}, {"FLEET_MPI_CUDA_AWARE": "yes"})
             for one in train(ranks, FLEET_MPI_ALLREDUCE="exact", **way)]
    assert [one["device"] for one in found[:ranks]] == list(range(ranks))
    assert len({one["hash"] for one in found}) == 1


@pytest.mark.parametrize("asynchronous", (False, True))
@pytest.mark.parametrize("way", ({"FLEET_MPI_ALLREDUCE": "fast", "FLEET_MPI_CUDA_AWARE": "no"},
                                 {"FLEET_MPI_ALLREDUCE": "fast", "FLEET_MPI_CUDA_AWARE": "yes"},
                                 {"FLEET_MPI_ALLREDUCE": "nccl"}), ids=("staged", "aware", "nccl"))
def test_ranks_stay_together_whatever_adds_up(way, asynchronous):
    found = train(2, asynchronous=asynchronous, **way)
    assert len({one["hash"] for one in found}) == 1
    assert 0 < found[0]["loss"] < 10


@pytest.mark.parametrize("ranks, asynchronous", ((2, False), (2, True), (4, False)))
def test_inside_tests_on_devices_hold_with_real_cupy(ranks, asynchronous):
    ended = run_inside_on_devices(ranks, "-k", "device", asynchronous=asynchronous)
    assert ended.code == 0, ended.story()


def test_resnet_trains_on_two_devices():
    ended = run_on_devices(2, ["-m", "fleet_mpi.examples.resnet"], "--gpu", "--steps", "3", "--batch-size", "2",
                           "--told-every", "1")
    assert ended.code == 0, ended.story()


def test_workers_on_devices_train_with_servers_on_hosts():
    ended = run_on_devices(4, "wide_and_deep_on_devices.py", "--samples", "400", "--batch-size", "50",
                           "--test-samples", "100", PADDLE_PSERVER_NUM="2")
    assert ended.code == 0, ended.story()
