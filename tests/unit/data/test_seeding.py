"""The source of randomness: one stream per pass when a seed is set."""

import random

from fleet_mpi import settings
from fleet_mpi.data.seeding import random_of_pass
from fleet_mpi.ranks import cluster


def test_without_a_seed_it_is_pythons_own_module():
    with settings.override(FLEET_MPI_SEED=0):
        assert random_of_pass(0) is random


def test_with_a_seed_streams_depend_on_seed_and_pass_only():
    with settings.override(FLEET_MPI_SEED=5):
        draws = [random_of_pass(number).random() for number in (0, 0, 1)]
    with settings.override(FLEET_MPI_SEED=6):
        draws.append(random_of_pass(0).random())
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3


def test_workers_of_a_job_have_orders_of_their_own(monkeypatch):
    with settings.override(FLEET_MPI_SEED=5):
        draws = [random_of_pass(0).random()]
        for index in (0, 1, 2):
            monkeypatch.setattr(cluster, "_cluster",
                                cluster.Cluster([cluster.Member(0, "worker", index, "", "")], 0, None))
            draws.append(random_of_pass(0).random())
    assert draws[0] == draws[1] and len(set(draws)) == 3
