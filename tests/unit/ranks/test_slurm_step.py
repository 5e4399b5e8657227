"""What srun says of a step, as the ranks of a machine need it."""

import pytest

from fleet_mpi import settings
from fleet_mpi.ranks import arriving

STEP = {"PMIX_NAMESPACE": "", "OMPI_COMM_WORLD_SIZE": 0, "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1",
        "SLURM_STEP_NUM_TASKS": 7,
        "SLURM_STEP_TASKS_PER_NODE": (2, 2, 2, 1)}


def test_the_tasks_of_a_node_are_neighbours():
    with settings.override(**STEP, SLURM_PROCID=3, SLURM_LOCALID=1, SLURM_NODEID=1):
        assert arriving.neighbours() == ("slurm 7.1 1", 1, 2, False)


def test_on_one_node_they_are_all_and_have_their_rank():
    with settings.override(**{**STEP, "SLURM_STEP_NUM_TASKS": 2, "SLURM_STEP_TASKS_PER_NODE": (2,)}, SLURM_PROCID=1,
                           SLURM_LOCALID=0,
                           SLURM_NODEID=0):
        assert arriving.neighbours() == ("slurm 7.1 0", 1, 2, True)


@pytest.mark.parametrize("variables",
                         ({"SLURM_HET_SIZE": 2}, {"SLURM_STEP_TASKS_PER_NODE": (2,)}, {"SLURM_NODEID": -1}))
def test_where_it_says_too_little_nobody_is(variables):
    with settings.override(**{**STEP, "SLURM_PROCID": 3, "SLURM_LOCALID": 1, "SLURM_NODEID": 1, **variables}):
        assert arriving.neighbours() is None
