"""Which GPU is whose: by FLAGS_selected_gpus, else by the number among the machine's ranks."""

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks.devices import local_rank, own_device, selected

SILENT = dict(OMPI_COMM_WORLD_LOCAL_RANK=-1, MPI_LOCALRANKID=-1, SLURM_LOCALID=-1, FLAGS_selected_gpus="")


@pytest.mark.parametrize("said, number", (
    ({}, None), ({"OMPI_COMM_WORLD_LOCAL_RANK": 2}, 2), ({"MPI_LOCALRANKID": 3}, 3), ({"SLURM_LOCALID": 1}, 1),
    # mpirun within a batch script: the script's own number is on every rank.
    ({"OMPI_COMM_WORLD_LOCAL_RANK": 2, "SLURM_LOCALID": 0}, 2), ({"MPI_LOCALRANKID": 3, "SLURM_LOCALID": 0}, 3)))
def test_the_launcher_says_which_rank_of_the_machine_this_is(said, number):
    with settings.override(**{**SILENT, **said}):
        assert local_rank() == number


@pytest.mark.parametrize("gpus, number, count, device", (
    ("", -1, 4, 0),          # alone
    ("", 2, 4, 2),
    ("", 5, 4, 1),           # more ranks than devices
    ("", 3, 1, 0),           # Slurm shows each rank its own device only
    ("", 1, 0, 0),           # no device at all
    ("3", 2, 4, 3),          # the launcher has chosen for this rank
    ("4,6", 0, 8, 4),
    ("4,6", 1, 8, 6),
    ("4,6", 2, 8, 4)))
def test_a_rank_has_a_device_of_its_own(gpus, number, count, device):
    with settings.override(**{**SILENT, "FLAGS_selected_gpus": gpus, "OMPI_COMM_WORLD_LOCAL_RANK": number}):
        assert own_device(count) == device


def test_devices_are_named_by_numbers():
    with settings.override(FLAGS_selected_gpus=" 0, 2,"):
        assert selected() == [0, 2]
    with settings.override(FLAGS_selected_gpus="all"), pytest.raises(EnvironmentProblem,
                                                                     match="'all': expected numbers"):
        selected()
