"""Who started a process, by its environment alone."""

import pytest

from fleet_mpi.launch.doctor_launcher import ALONE, Launcher, launcher

STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2", "SLURM_NODEID": "1",
        "SLURM_STEP_TASKS_PER_NODE": "1,2"}


@pytest.mark.parametrize("environ, expected", (
    ({}, ALONE),
    ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, ALONE),  # a batch script
    ({**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, ALONE),       # an interactive shell
    ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
     Launcher("Open MPI's mpirun", "Open MPI", 4, "OMPI_COMM_WORLD_SIZE", 3, 2)),
    ({"PMI_SIZE": "4", "PMI_RANK": "1", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4", "SLURM_PROCID": "0"},
     Launcher("MPICH's mpirun", "MPICH", 4, "PMI_SIZE", 1, 4)),
    (STEP, Launcher("srun --mpi=none", "", 3, "SLURM_STEP_NUM_TASKS", 2, 2)),
    ({**STEP, "SLURM_STEP_TASKS_PER_NODE": "3(x2)"}, Launcher("srun --mpi=none", "", 3, "SLURM_STEP_NUM_TASKS", 2, 3)),
    ({**STEP, "PMI_RANK": "2", "PMI_SIZE": "3"}, Launcher("srun --mpi=pmi2", "", 3, "SLURM_STEP_NUM_TASKS", 2, 2)),
    ({**STEP, "PMIX_RANK": "2"}, Launcher("srun --mpi=pmix", "", 3, "SLURM_STEP_NUM_TASKS", 2, 2)),
    ({"PALS_RANKID": "5"}, Launcher("PALS", "", 0, "", 5)),
    ({"PMI_RANK": "1", "PMI_SIZE": "2"}, Launcher("a launcher that speaks pmi2", "", 2, "PMI_SIZE", 1)),
    ({"OMPI_COMM_WORLD_SIZE": "many", "SLURM_STEP_NUM_TASKS": "few"}, ALONE),
))
def test_the_launcher_is_known_by_its_variables(environ, expected):
    assert launcher(environ) == expected


def test_only_srun_without_mpi_is_deaf():
    assert launcher(STEP).is_deaf and not launcher({**STEP, "PMIX_RANK": "2"}).is_deaf and not ALONE.is_deaf
