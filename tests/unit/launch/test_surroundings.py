"""What is around: devices that this process may use, and the nodes of its Slurm job."""

import pytest

from fleet_mpi.launch.surroundings import around, gpus


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
    assert gpus(environ, tmp_path) == tuple(seen.split())


def test_no_folder_of_devices_is_no_device():
    assert gpus({}, "/nowhere/at/all") == ()


def test_nodes_and_tasks_count_within_a_slurm_job_only(tmp_path):
    variables = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NTASKS": "6"}
    assert around(variables, tmp_path)[2:4] == ((), 0)
    found = around({**variables, "SLURM_JOB_ID": "7"}, tmp_path)
    assert found[2:4] == (("n1", "n2"), 6) and found.cores >= 1
