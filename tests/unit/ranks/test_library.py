"""A launcher of one MPI and a Python of another: refused before MPI starts."""

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks import library
from fleet_mpi.ranks.library import MPICH, OPEN_MPI

BY_OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "0"}
BY_MPICH = {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
BY_SRUN_PMIX = {"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "2"}
BY_SRUN_PMI2 = {"PMI_RANK": "0", "PMI_SIZE": "2", "SLURM_STEP_NUM_TASKS": "2"}


@pytest.fixture
def told(monkeypatch):
    """Set the variables of a launcher, and no others."""
    def tell(variables):
        for name in {*BY_OPEN_MPI, *BY_MPICH, *BY_SRUN_PMIX}:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    return tell


@pytest.mark.parametrize("variables, own, cure", (
    (BY_OPEN_MPI, MPICH, "the mpirun of Open MPI started this process (PMIX_RANK is set), but this Python loads MPICH"),
    (BY_MPICH, OPEN_MPI, "the mpirun of MPICH started this process (PMI_RANK is set), but this Python loads Open MPI"),
    (BY_SRUN_PMIX, MPICH, "give srun --mpi=pmi2")))
def test_a_wrong_pair_is_refused_with_the_cure(told, variables, own, cure):
    told(variables)
    with pytest.raises(EnvironmentProblem, match="do not belong together") as caught:
        library.refuse_foreign_launcher(own)
    assert cure in str(caught.value) and caught.value.exit_code == 3
    assert caught.value.reported_by_peer is (variables is BY_MPICH)  # rank 0 speaks for all


@pytest.mark.parametrize("variables, own", (
    (BY_OPEN_MPI, OPEN_MPI), (BY_MPICH, MPICH), (BY_SRUN_PMI2, MPICH), (BY_SRUN_PMIX, OPEN_MPI), ({}, MPICH),
    ({}, OPEN_MPI),
    ({**BY_OPEN_MPI, **BY_MPICH}, MPICH), ({**BY_OPEN_MPI, **BY_MPICH}, OPEN_MPI), (BY_SRUN_PMI2, OPEN_MPI)))
def test_a_pair_that_may_be_right_is_left_alone(told, variables, own):
    told(variables)
    library.refuse_foreign_launcher(own)


def test_the_library_is_the_one_beside_the_interpreter_unless_said_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("MPI4PY_LIBMPI", raising=False)
    assert library.beside(tmp_path) is None
    (tmp_path / "libmpi.so.12").touch()
    assert library.beside(tmp_path) == MPICH
    monkeypatch.setenv("MPI4PY_LIBMPI", "/usr/lib/libmpi.so.40")
    assert library.beside(tmp_path) == OPEN_MPI
