"""Who is who: what counts as launched, a world of one, the groups of a cluster; many ranks are tested under MPI."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.launch.mpirun import MPICH, find_mpirun
from fleet_mpi.ranks import cluster, ending
from fleet_mpi.ranks.cluster import Cluster, Member

ROOT = Path(__file__).parents[3]
MARKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "PALS_RANKID")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No launcher's variables, no MPI, nothing joined."""
    for name in (*MARKS, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cluster, "_world", None)
    monkeypatch.setattr(cluster, "_cluster", None)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    yield
    ending.release()


def test_a_process_without_a_launcher_is_a_world_of_one_without_mpi():
    assert not cluster.launched() and cluster.started_together() == (0, "")
    assert cluster.world() == (0, 1, None)


@pytest.mark.parametrize("name", MARKS)
def test_every_launchers_variable_counts(monkeypatch, name):
    monkeypatch.setenv(name, "0")
    assert cluster.launched()


@pytest.mark.parametrize("variables, launched, started", (
    ({"SLURM_NTASKS": "8"}, False, (0, "")),
    ({"SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "1"}, False, (1, "SLURM_STEP_NUM_TASKS")),
    ({"SLURM_STEP_NUM_TASKS": "8"}, True, (8, "SLURM_STEP_NUM_TASKS")),
    ({"SLURM_STEP_NUM_TASKS": "2", "OMPI_COMM_WORLD_SIZE": "8"}, True, (8, "OMPI_COMM_WORLD_SIZE")),
    ({"SLURM_STEP_NUM_TASKS": "2", "PMI_SIZE": "8"}, True, (8, "PMI_SIZE"))))
def test_a_steps_tasks_count_only_without_a_word_from_mpis_own_launcher(monkeypatch, variables, launched, started):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cluster.launched() == launched and cluster.started_together() == started


@pytest.mark.parametrize("variable, cure", (
    ("OMPI_COMM_WORLD_SIZE", "use the mpirun of this Python's own environment"),
    ("PMI_SIZE", "python -m fleet_mpi.launch"),
    ("SLURM_STEP_NUM_TASKS", "--mpi=pmix for Open MPI, --mpi=pmi2 for MPICH")))
def test_singletons_are_refused_with_the_cure(monkeypatch, variable, cure):
    monkeypatch.setenv(variable, "4")
    with pytest.raises(EnvironmentProblem,
                       match=rf"4 processes were started together \({variable}\).*world of 1.*{cure}"):
        cluster._refuse_singletons(1)
    cluster._refuse_singletons(4)


def test_one_process_joins_as_the_one_worker():
    joined = cluster.join("worker", workers=1, servers=["a:1", "b:1"])
    assert (joined.rank, joined.size, joined.role, joined.index, joined.servers) == (0, 1, "worker", 0, ())
    assert joined.workers == (joined.me,) and joined.comm is None and joined.role_comm is None
    assert cluster.join("worker") is joined is cluster.current()


@pytest.mark.parametrize("described", (dict(role="server"), dict(role="worker", workers=2),
                                       dict(role="server", index=1, servers=["a:1", "b:1"])))
def test_one_process_of_several_is_refused_with_the_command_to_use(described):
    with pytest.raises(EnvironmentProblem, match="-np 1 .* : -np 1 "):
        cluster.join(**described)
    assert cluster.current() is None


def test_what_one_process_does_with_itself():
    joined, array = cluster.join("worker"), np.arange(3.0)
    for among in ("worker", "server", "all"):
        total = joined.all_reduce(array, "max", among)
        assert total.tolist() == [0, 1, 2] and total is not array
        assert joined.all_gather({"a": 1}, among) == [{"a": 1}]
        joined.barrier(among)


def test_what_no_group_or_mode_is_called_is_refused():
    joined = cluster.join("worker")
    with pytest.raises(UsageError, match="expected worker, server or all, got 'workers'"):
        joined.barrier("workers")
    with pytest.raises(UsageError, match="mode must be sum, max or min, got 'mean'"):
        joined.all_reduce(np.ones(2), "mean")


class Comm:
    """A communicator that only notes how it was split."""

    def __init__(self, color=None, key=None):
        self.color, self.key = color, key

    def Dup(self):
        """Another one."""
        return Comm()

    def Split(self, color, key):
        """One that knows what for."""
        return Comm(color, key)


MEMBERS = [Member(0, "server", 1, "a:1", "h"), Member(1, "worker", 1, "", "h"), Member(2, "worker", 0, "", "g"),
           Member(3, "server", 0, "b:1", "g")]


def test_members_are_listed_by_number_and_all_has_workers_first():
    joined = Cluster(MEMBERS, 3, Comm())
    assert [member.rank for member in joined.workers] == [2, 1] and [member.rank for member in joined.servers] == [3, 0]
    assert joined.role_comm.key == 0 and joined._comms["all"].key == 2
    assert joined.role_comm.color != Cluster(MEMBERS, 1, Comm()).role_comm.color


def test_a_server_has_no_part_in_what_workers_do():
    with pytest.raises(UsageError, match=r"server 1 \(rank 0, host h\) is no worker"):
        Cluster(MEMBERS, 0, Comm()).barrier("worker")


def test_a_process_has_one_role_for_its_whole_life(monkeypatch):
    monkeypatch.setattr(cluster, "_world", cluster.World(1, 4, Comm()))
    monkeypatch.setattr(cluster, "_cluster", Cluster(MEMBERS, 1, Comm()))
    assert cluster.join("worker") is cluster.join("worker", 1) is cluster.current()
    for other in (("server",), ("worker", 0)):
        with pytest.raises(UsageError, match="has joined as worker 1 and cannot be"):
            cluster.join(*other)


def test_the_sentence_of_a_failure_knows_rank_role_host_and_step(monkeypatch):
    monkeypatch.setattr(cluster.socket, "gethostname", lambda: "h")
    assert cluster._own_name() == ""
    monkeypatch.setattr(cluster, "_world", cluster.World(1, 4, None))
    assert cluster._own_name() == "rank 1 (host h)"
    joined = Cluster(MEMBERS, 1, Comm())
    monkeypatch.setattr(cluster, "_cluster", joined)
    joined.progress = 17
    assert cluster._own_name() == "rank 1 (worker 1, host h, step 17)"


def test_one_process_keeps_its_seed():
    with settings.override(FLEET_MPI_SEED=0):
        cluster.share_seed()
        assert settings.get("FLEET_MPI_SEED") == 0


def test_a_described_job_begun_by_hand_exits_with_3():
    ended = subprocess.run(
        [sys.executable, "-c",
         "from fleet_mpi.ranks import cluster; cluster.join('worker', 0, workers=2, servers=['a:1'])"],
        capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ended.returncode == 3 and ended.stdout == ""
    assert len(ended.stderr.splitlines()[-1].split(" : ")) == 3


@pytest.mark.parametrize("variable", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
def test_processes_that_see_only_themselves_are_not_taken_for_separate_jobs(variable):
    """In a process of its own: it starts MPI, unless the launcher is known to be another MPI's."""
    program = "from fleet_mpi.fleet.facade import CollectiveFleet; CollectiveFleet().init(); print('trains alone')"
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": str(ROOT), variable: "4"})
    assert (ended.returncode, ended.stdout) == (3, "")
    if find_mpirun().family == MPICH and variable.startswith("OMPI_"):
        assert "they do not belong together" in ended.stderr
    else:
        assert f"4 processes were started together ({variable}), but MPI sees a world of 1" in ended.stderr
