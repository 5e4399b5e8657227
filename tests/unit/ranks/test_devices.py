"""Which GPU is whose: by FLAGS_selected_gpus, else by the number among the machine's ranks."""

import os

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks import devices
from fleet_mpi.ranks.devices import local_rank, own_device, selected, visible

SILENT = {**dict.fromkeys(devices.HINTS, -1), "FLAGS_selected_gpus": ""}


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """What the driver counts: no device, whatever this machine has."""
    counted = []
    monkeypatch.setattr(devices.nvml, "device_count", lambda: len(counted))
    return counted


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Four GPUs, nothing said so far; what is exported goes away with the test."""
    for name in (*devices.HINTS, "FLAGS_selected_gpus", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "")  # so that it is restored in the end, whatever becomes of it
        monkeypatch.delenv(name)
    monkeypatch.setattr(devices, "_by_mpi", None)
    monkeypatch.setattr(devices, "_exported", None)
    monkeypatch.setattr(devices, "FOLDER", tmp_path)
    for number in range(4):
        (tmp_path / f"nvidia{number}").touch()
    return monkeypatch


@pytest.mark.parametrize("said, number", (
    ({}, None), ({"OMPI_COMM_WORLD_LOCAL_RANK": 2}, 2), ({"MPI_LOCALRANKID": 3}, 3), ({"SLURM_LOCALID": 1}, 1),
    ({"PALS_LOCAL_RANKID": 4}, 4), ({"MV2_COMM_WORLD_LOCAL_RANK": 1}, 1), ({"MVP_COMM_WORLD_LOCAL_RANK": 1}, 1),
    ({"PMI_LOCAL_RANK": 5, "SLURM_LOCALID": 0}, 5),
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


def test_the_launchers_word_counts_until_mpi_has_said_it(machine):
    machine.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3")
    assert local_rank() == 3
    devices.joined(1)
    assert local_rank() == 1 and own_device(4) == 1


def test_a_rank_finds_its_device_in_the_variable_that_guides_read(machine):
    machine.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3")
    devices.export_own()
    assert os.environ["FLAGS_selected_gpus"] == "3" and own_device(4) == 3
    devices.joined(1)  # of four ranks two serve
    assert os.environ["FLAGS_selected_gpus"] == "1" and own_device(4) == 1


@pytest.mark.parametrize("variables, expected", (
    ({}, None),                                                                      # alone: all devices are its own
    ({"OMPI_COMM_WORLD_LOCAL_RANK": "3", "FLAGS_selected_gpus": "2"}, "2"),          # the user, or fleetrun, has chosen
    ({"OMPI_COMM_WORLD_LOCAL_RANK": "3", "CUDA_VISIBLE_DEVICES": "5"}, "0"),         # srun --gpus-per-task
    ({"OMPI_COMM_WORLD_LOCAL_RANK": "3", "CUDA_VISIBLE_DEVICES": ""}, None)))        # no GPU for this job
def test_what_was_chosen_stays(variables, expected, machine):
    for name, value in variables.items():
        machine.setenv(name, value)
    devices.export_own()
    assert os.environ.get("FLAGS_selected_gpus") == expected


@pytest.mark.parametrize("files, environ, seen", (
    ("", {}, ""),
    ("nvidia0 nvidia1 nvidiactl nvidia-uvm", {}, "0 1"),
    ("nvidia0 nvidia1", {"CUDA_VISIBLE_DEVICES": "1"}, "0"),
    ("nvidia0 nvidia1", {"CUDA_VISIBLE_DEVICES": ""}, ""),
    ("nvidia0", {"CUDA_VISIBLE_DEVICES": "-1"}, ""),
    ("", {"CUDA_VISIBLE_DEVICES": "0,1"}, ""),
))
def test_devices_are_numbered_as_this_process_sees_them(files, environ, seen, tmp_path):
    for name in files.split():
        (tmp_path / name).touch()
    assert visible(environ, tmp_path) == tuple(seen.split())


def test_no_folder_of_devices_is_no_device():
    assert visible({}, "/nowhere/at/all") == ()


@pytest.mark.parametrize("environ, seen", (({}, ("0", "1")), ({"CUDA_VISIBLE_DEVICES": "1"}, ("0",)),
                                           ({"CUDA_VISIBLE_DEVICES": ""}, ())))
def test_where_no_files_are_the_driver_counts(environ, seen, counted, tmp_path):
    counted += [0, 1]
    assert visible(environ, tmp_path) == seen


def test_files_are_counted_before_the_driver_is_asked(counted, tmp_path):
    counted += [0, 1]
    (tmp_path / "nvidia0").touch()
    assert visible({}, tmp_path) == ("0",)
