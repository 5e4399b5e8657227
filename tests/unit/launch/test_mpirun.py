"""The mpirun beside the interpreter is taken before any other, and known by what it says of itself."""

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.launch.mpirun import (
    MPICH,
    OPEN_MPI,
    SLURM,
    Launcher,
    environment,
    family_of,
    find_launcher,
    find_mpirun,
    main_version,
)


@pytest.fixture
def folder(tmp_path):
    """Makes a folder with a mpirun that says this of itself."""
    def make(name, says, program="mpirun"):
        path = tmp_path / name / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o755)
        return path.parent
    return make


def test_the_one_beside_the_interpreter_comes_first(folder):
    beside, elsewhere = folder("venv", "mpirun (Open MPI) 5.0.11"), folder("system", "HYDRA build details:")
    found = find_mpirun(python=str(beside / "python"), search=str(elsewhere))
    assert found == (str(beside / "mpirun"), OPEN_MPI)


def test_else_it_is_looked_for_on_the_path(folder, tmp_path):
    elsewhere = folder("system", "HYDRA build details:")
    found = find_mpirun(python=str(tmp_path / "none" / "python"), search=f"/nowhere:{elsewhere}")
    assert found == (str(elsewhere / "mpirun"), MPICH)


@pytest.mark.parametrize("library, fits", (("libmpi.so.12", True), ("libmpi.so.40", False)))
def test_a_mpirun_of_another_mpi_than_the_ranks_would_load_is_refused(folder, tmp_path, monkeypatch, library, fits):
    elsewhere = folder("system", "HYDRA build details:")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / library).touch()
    monkeypatch.delenv("MPI4PY_LIBMPI", raising=False)
    if fits:
        assert find_mpirun(python=str(tmp_path / "bin" / "python"), search=str(elsewhere)).family == MPICH
    else:
        with pytest.raises(EnvironmentProblem, match="is of MPICH, but .*libmpi.so.40, .* is of Open MPI"):
            find_mpirun(python=str(tmp_path / "bin" / "python"), search=str(elsewhere))
        monkeypatch.setenv("MPI4PY_LIBMPI", "/usr/lib/libmpi.so.12")
        assert find_mpirun(python=str(tmp_path / "bin" / "python"), search=str(elsewhere)).family == MPICH


def test_none_at_all_is_a_sentence_with_the_cure(tmp_path):
    with pytest.raises(EnvironmentProblem, match=f"no mpirun, neither in {tmp_path} nor on PATH.*pip install"):
        find_mpirun(python=str(tmp_path / "python"), search="")


@pytest.mark.parametrize("says, family", (
    ("mpirun (Open MPI) 5.0.11\n", OPEN_MPI), ("mpiexec (OpenRTE) 4.1.4", OPEN_MPI), ("HYDRA build details:", MPICH),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.15", MPICH)))
def test_families(says, family):
    assert family_of(says) == family


def test_an_unknown_one_is_refused_with_its_words():
    with pytest.raises(EnvironmentProblem, match="says 'slurm wrapper 3': expected that of Open MPI or of MPICH"):
        family_of("slurm  wrapper\n3")


def test_a_home_is_given_where_there_is_none():
    assert environment(OPEN_MPI, {}, root=False)["HOME"].startswith("/")
    assert "HOME" not in environment(OPEN_MPI, {"HOME": ""}, root=False)


@pytest.mark.parametrize("says, version", (
    ("mpirun (Open MPI) 5.0.11\n", 5), ("mpirun (Open MPI) 4.1.4", 4), ("mpiexec (OpenRTE) 4.1.4", 4),
    ("HYDRA build details:\n    Version:                                 5.0.2\n", 5),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.15", 2021), ("HYDRA", 0)))
def test_versions(says, version):
    assert main_version(says) == version


def test_another_program_may_be_asked_for_by_name_or_path(folder, tmp_path):
    beside = folder("venv", "mpirun (Open MPI) 5.0.11")
    folder("venv", "mpirun (Open MPI) 4.1.4", "mpiexec")
    python = str(beside / "python")
    assert find_launcher("mpiexec", python, "") == Launcher(str(beside / "mpiexec"), OPEN_MPI, 4)
    assert find_launcher(str(beside / "mpirun"), python, "").version == 5
    with pytest.raises(EnvironmentProblem, match="no srun, .*Slurm cluster"):
        find_launcher("srun", python, "")


@pytest.mark.parametrize("library, mpirun, plugin", (
    ("libmpi.so.12", "mpirun (Open MPI) 5.0.11", "pmi2"), ("libmpi.so.40", None, "pmix"),
    (None, "HYDRA build details:", "pmi2"), (None, None, "")))
def test_srun_speaks_to_the_mpi_that_ranks_load(folder, tmp_path, monkeypatch, library, mpirun, plugin):
    monkeypatch.delenv("MPI4PY_LIBMPI", raising=False)
    search = folder("system", "slurm 22.05.8", "srun")
    if mpirun:
        folder("system", mpirun)
    (tmp_path / "lib").mkdir()
    if library:
        (tmp_path / "lib" / library).touch()
    found = find_launcher("srun", str(tmp_path / "bin" / "python"), str(search))
    assert found == Launcher(str(search / "srun"), SLURM, 0, plugin)
