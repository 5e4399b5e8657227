"""Collectives of one worker: its own values, whatever is combined."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers import collective
from tests.unit.program.building import data


@pytest.mark.parametrize("layer", (
    lambda x: collective._allreduce(x), lambda x: collective._c_allreduce(x, reduce_type="max", use_calc_stream=True),
    lambda x: collective._c_allgather(x, 1), lambda x: collective._c_reducescatter(x, 1),
    lambda x: collective._c_broadcast(x, 0), lambda x: collective._broadcast(x, 0),
    lambda x: collective._c_sync_calc_stream(x), lambda x: collective._c_sync_comm_stream(x, 0)))
def test_a_worker_alone_gets_its_own_values(layer):
    out = layer(data("x", [-1, 2]))
    given = np.array([[1.0, 2.0]], "float32")
    assert Executor().run(feed={"x": given}, fetch_list=[out])[0].tolist() == given.tolist()


def test_the_result_may_go_to_a_variable_of_the_script():
    x = data("x", [-1, 2])
    out = default_main_program().global_block().create_var(name="mine", shape=[-1, 2])
    assert collective._allreduce(x, out) is out


@pytest.mark.parametrize("call, said", (
    (lambda x: collective._allreduce(x, reduce_type="mean"), "expected one of sum, prod, max, min, got 'mean'"),
    (lambda x: collective._c_allgather(x, 2), "one process has worker 0 only, got nranks - 1 = 1"),
    (lambda x: collective._c_broadcast(x, 3), "one process has worker 0 only, got root = 3")))
def test_what_needs_others_is_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call(data("x", [-1, 2]))
