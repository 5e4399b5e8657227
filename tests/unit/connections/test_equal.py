"""Equal workers over plain arrays: buckets, sums at once, gathered rows, first values; and a reducer of one's own."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.collective.buckets import Gradient, fuse
from fleet_mpi.collective.choosing import Options
from fleet_mpi.connections.equal import EqualConnection, EqualTerms
from fleet_mpi.errors import UsageError
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


def connected(group, **given):
    """A connection whose gradients lie on the host."""
    connection = EqualConnection(TERMS, group, **given)
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
    """A reducer of one's own: alone in the world, it takes itself for two."""

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


def test_a_reducer_is_one_class_and_one_line():
    connection = connected(as_workers(1, [Network()], lambda group: group)[0], make_reducers=lambda xp: [Doubling()])
    found = step_of(connection, 0)
    assert all(np.array_equal(found[one.name], made_by(0, 0, one.shape) * 2) for one in GRADIENTS)
