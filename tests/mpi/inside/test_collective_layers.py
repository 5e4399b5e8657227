"""Layers by which a program combines the workers' values itself."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.ranks import cluster
from fleet_mpi.runtime.ops import combining as collective_layers
from tests.unit.program.building import data, from_scratch

ROWS = 60  # divides by every number of ranks


@pytest.fixture
def job(monkeypatch):
    """All ranks as workers, for one test."""
    monkeypatch.setattr(cluster, "_cluster", None)
    return cluster.join("worker", workers=cluster.world().size, servers=[])


def run(layer, given):
    """What a program with one layer makes of [-1, 2] values."""
    with from_scratch():
        x = data("x", [-1, 2])
        return Executor().run(feed={"x": given}, fetch_list=[layer(x)])[0]


def given_by(number):
    """A worker's values; products of a few stay exact."""
    return (np.arange(ROWS * 2, dtype="float32").reshape(ROWS, 2) % 3 + 1 + number % 2)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("kind, expected", (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)))
def test_values_are_combined_over_all_workers(job, kind, expected):
    for layer in (collective_layers._allreduce, collective_layers._c_allreduce):
        found = run(lambda x: layer(x, reduce_type=kind), given_by(job.index))
        assert (found == expected([given_by(number) for number in range(job.size)], axis=0)).all()


@pytest.mark.mpi(min_size=2)
def test_values_are_taken_gathered_and_scattered_by_worker(job):
    everyones = [given_by(number) for number in range(job.size)]
    assert (run(lambda x: collective_layers._c_broadcast(x, 1), given_by(job.index)) == everyones[1]).all()
    assert (run(lambda x: collective_layers._c_allgather(x, job.size), given_by(job.index)) ==
            np.concatenate(everyones)).all()
    own = np.split(np.sum(everyones, axis=0), job.size)[job.index]
    assert (run(lambda x: collective_layers._c_reducescatter(x, job.size), given_by(job.index)) == own).all()


@pytest.mark.mpi(min_size=2)
def test_what_does_not_fit_the_job_is_refused_on_every_rank(job):
    with pytest.raises(UsageError, match="expected one of sum, prod, max, min, got 'mean'"):
        run(lambda x: collective_layers._allreduce(x, reduce_type="mean"), given_by(0))
    with pytest.raises(ProgramError, match=f"this job has {job.size} workers, got {job.size + 1}"):
        run(lambda x: collective_layers._c_allgather(x, job.size + 1), given_by(0))
    with pytest.raises(ProgramError, match=f"there are {job.size} workers, got 99"):
        run(lambda x: collective_layers._broadcast(x, 99), given_by(0))
