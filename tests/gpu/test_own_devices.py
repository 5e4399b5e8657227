"""One rank, one device, however ranks are started; srun is in tests/slurm/test_scripts.py."""

import os

import pytest

from fleet_mpi.program.engine import places
from tests.gpu.device_jobs import HERE, environment, own_devices
from tests.mpi.jobs import run_job

RANK = HERE / "own_device_rank.py"


@pytest.fixture(autouse=True)
def machine():
    """At least two devices: on the emulation as many as are asked for."""
    if "FLEET_EMULATION" not in os.environ and places.cuda_device_count() < 2:
        pytest.skip("expected two GPUs, got one")


def started(ranks, words, tmp_path, devices=2, **settings):
    """What the ranks told of their devices."""
    via = "command" if "-m" in words else "mpirun"
    ended = run_job(ranks, [*words, RANK, tmp_path], via=via, cwd=tmp_path, timeout=300,
                    env=environment(devices, FLEET_MPI_STRICT_DEVICE="1", **settings))
    assert ended.code == 0, ended.story()
    return own_devices(tmp_path, ranks)


def test_plain_mpirun_gives_every_rank_the_device_of_its_number(tmp_path):
    assert started(2, [], tmp_path) == [0, 1]


def test_ranks_beyond_the_last_device_begin_again(tmp_path):
    assert started(3, [], tmp_path, CUDA_VISIBLE_DEVICES="0,1") == [0, 1, 0]


def test_ranks_share_the_only_device_that_they_may_see(tmp_path):
    assert started(2, [], tmp_path, CUDA_VISIBLE_DEVICES="1") == [0, 0]


@pytest.mark.parametrize("gpus, expected", (("0,1", [0, 1]), ("1,0", [1, 0])))
def test_fleetrun_gives_every_rank_the_device_that_was_named(gpus, expected, tmp_path):
    assert started(2, ["-m", "fleet_mpi.launch", f"--gpus={gpus}"], tmp_path) == expected
