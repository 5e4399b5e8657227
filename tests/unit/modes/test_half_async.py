"""Half-asynchronous: averages of a worker's own batches, waited for; other workers are not."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.placement import Variable
from tests.unit.modes.loop import Loop

VARIABLE = (Variable("p", (4,)),)


def stepped(values, **told):
    """A job whose first worker has taken steps with these gradients; the second one does nothing."""
    loop = Loop("half_async", told, 1, 2, VARIABLE, rate=1.0)
    loop.clients[0].transport.on_wait = loop.pump
    seen = []
    for value in values:
        loop.grads(0)["p"][...] = value
        loop.halves[0].after_backward()
        seen.append(float(loop.params(0)["p"][0]))
    return loop, seen


def test_the_mean_of_some_batches_is_one_update_that_is_waited_for():
    loop, seen = stepped([1.0, 3.0, 5.0, 7.0], max_merge_var_num=2)
    assert seen == [0.0, -2.0, -2.0, -8.0]
    assert loop.servers[0].applied == [2, 0] and loop.servers[0].mode.batches == [4, 0]


def test_each_batch_is_an_update_where_nothing_is_merged():
    assert stepped([1.0, 2.0])[1] == [-1.0, -3.0]


def test_what_is_left_at_the_end_is_a_mean_over_the_batches_it_has():
    loop, _ = stepped([2.0, 4.0, 10.0, 20.0], max_merge_var_num=3)
    loop.halves[0].finish()
    loop.halves[0].finish()
    assert loop.servers[0].mode.batches == [4, 0]
    assert np.allclose(loop.values()["p"], -(16 / 3 + 20))
    assert loop.servers[0].mode.late(0.0) == []


def test_fewer_than_one_batch_is_refused():
    with pytest.raises(UsageError, match="max_merge_var_num: expected a whole number from 1 up, got 0"):
        stepped([], max_merge_var_num=0)
