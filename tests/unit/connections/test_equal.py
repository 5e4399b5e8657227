"""Equal workers over plain arrays: buckets, sums at once, gathered rows, first values; and a reducer of one's own."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.arrays import Rows
from fleet_mpi.collective import choosing
from fleet_mpi.collective.buckets import Gradient, fuse
from fleet_mpi.collective.choosing import Options
from fleet_mpi.connections.equal import EqualConnection, EqualTerms
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.wire.loopback import Network
from tests.exact.threads_as_workers import as_workers

GRADIENTS = [Gradient("b@GRAD", (5,), "float32"), Gradient("w@GRAD", (30, 5), "float32")]
TERMS = EqualTerms(3, None, GRADIENTS, fuse(GRADIENTS, 0, 0), Options(), {})


def made_by(worker, step, shape):
    """A gradient."""
    return np.random.default_rng([worker, step, *shape]).normal(size=shape).astype("float32")


def summed(step, shape, workers=3):
    """In worker order."""
    total = made_by(0, step, shape)
    for worker in range(1, workers):
        total = total + made_by(worker, step, shape)
    return total


def connected(group):
    """A connection whose gradients lie on the host."""
    connection = EqualConnection(TERMS, group)
    assert connection.move_to(np) and not connection.move_to(np)
    return connection


def step_of(connection, step):
    """One step without a backward pass; returns {gradient: sum}."""
    connection.require_between_steps()
    for one in GRADIENTS:
        connection.flat.views[one.name][...] = made_by(connection.group.index, step, one.shape)
        connection.ready(one.name)
    connection.wait()
    return {name: view.copy() for name, view in connection.flat.views.items()}


def test_buckets_are_summed_in_worker_order():
    def work(group):
        connection = connected(group)
        return [step_of(connection, step) for step in range(3)], connection.steps
    for steps, count in as_workers(3, [Network()], work):
        assert count == 3
        for step, found in enumerate(steps):
            assert all(np.array_equal(found[one.name], summed(step, one.shape)) for one in GRADIENTS)


def test_sums_at_once_gathered_rows_and_first_values():
    def work(group):
        connection, me = connected(group), group.index
        array = made_by(me, 7, (4,))
        connection.sum_now(array)
        rows = connection.gather_rows(Rows(np.array([me, 9]), np.full((2, 2), me, "float32"), 10))
        values = np.full(3, me + 1.0)
        connection.broadcast([values])
        return array, rows.ids.tolist(), rows.values[:, 0].tolist(), values.tolist()
    for array, ids, rows, values in as_workers(3, [Network()], work):
        assert np.array_equal(array, summed(7, (4,)))
        assert (ids, rows, values) == ([0, 9, 1, 9, 2, 9], [0, 0, 1, 1, 2, 2], [1.0] * 3)


def test_a_step_that_was_left_in_the_middle_is_not_gone_on_with():
    gradients = fuse(GRADIENTS, 32, 32)
    terms = TERMS._replace(buckets=gradients)

    def work(group):
        connection = EqualConnection(terms, group)
        connection.move_to(np)
        connection.ready("b@GRAD")
        with pytest.raises(UsageError, match="step 0 was left by an error while gradients were on their way"):
            connection.require_between_steps()
    as_workers(3, [Network()], work)


class Doubling:
    """A reducer of one's own: every worker takes itself for two."""

    def start(self, array):
        """Over at once."""
        array *= 2
        return self

    def advance(self):
        """Nothing to do."""
        return False

    def is_over(self):
        """Always."""
        return True

    def waits_for(self):
        """Nobody."""
        return []


def test_a_reducer_is_one_class_and_one_line_of_the_table(monkeypatch):
    monkeypatch.setitem(choosing.WAYS, "doubling", choosing.Way(lambda group, nodes: [Doubling()], None, "in no order"))

    def work(group):
        return step_of(connected(group), 0)
    with settings.override(FLEET_MPI_ALLREDUCE="doubling"):
        for worker, found in enumerate(as_workers(3, [Network()], work)):
            assert all(np.array_equal(found[one.name], made_by(worker, 0, one.shape) * 2) for one in GRADIENTS)


def test_a_way_to_sum_that_is_not_there_is_refused_with_those_that_are():
    def work(group):
        with pytest.raises(EnvironmentProblem, match="^FLEET_MPI_ALLREDUCE=quick: expected exact, fast or nccl$"):
            connected(group)
    with settings.override(FLEET_MPI_ALLREDUCE="quick"):
        as_workers(3, [Network()], work)
