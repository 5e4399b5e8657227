"""Who a process is, for scripts that ask without a fleet."""

import pytest

from fleet_mpi import settings
from fleet_mpi.fleet import parallel_env
from fleet_mpi.fleet.paddle2 import Fleet2
from fleet_mpi.program.engine import places
from fleet_mpi.ranks import cluster
from fleet_mpi.ranks.roster import Member


@pytest.fixture(autouse=True)
def nobody_yet(monkeypatch):
    """A fleet that was not asked for a role, and no job."""
    monkeypatch.setattr(parallel_env, "paddle_fleet", Fleet2())
    monkeypatch.setattr(cluster, "_cluster", None)


def test_a_process_by_itself_is_worker_0_of_1():
    assert (parallel_env.get_rank(), parallel_env.get_world_size()) == (0, 1)
    env = parallel_env.init_parallel_env()
    assert (env.rank, env.nranks, env.device_id, env.current_endpoint) == (0, 1, 0, "")
    parallel_env.barrier()


def test_the_launchers_variables_are_taken_before_a_job_is_joined():
    with settings.override(PADDLE_TRAINER_ENDPOINTS="a:1,b:1,c:1", PADDLE_TRAINER_ID=2, FLAGS_selected_gpus="5"):
        env = parallel_env.ParallelEnv()
        assert (env.rank, env.local_rank, env.world_size, env.dev_id) == (2, 2, 3, 5)
        assert (env.current_endpoint, env.trainer_endpoints) == ("c:1", ["a:1", "b:1", "c:1"])


def test_a_job_that_was_joined_in_another_way_is_known(monkeypatch):
    class Job:
        index, workers = 1, [Member(0, "worker", 0, "a:1", "h"), Member(2, "worker", 1, "b:1", "h")]
    monkeypatch.setattr(cluster, "_cluster", Job)
    assert (parallel_env.get_rank(), parallel_env.get_world_size()) == (1, 2)
    assert parallel_env.ParallelEnv().current_endpoint == "b:1"


def test_the_device_is_the_one_that_places_give(monkeypatch):
    monkeypatch.setattr(places, "cuda_device_count", lambda: 4)
    with settings.override(FLAGS_selected_gpus="", OMPI_COMM_WORLD_LOCAL_RANK=2):
        assert parallel_env.ParallelEnv().device_id == 2 and places.cuda_places() == [places.CUDAPlace(2)]
