"""A transport and a mode of one's own are one file and one line each; jobs over them train."""

import numpy as np
import pytest

from fleet_mpi import modes
from fleet_mpi.connections import server
from fleet_mpi.connections.terms import Uplink
from fleet_mpi.connections.worker import WorkerConnection
from tests.unit.connections import toy_mode
from tests.unit.connections.arrays_job import RATE, first_values, gradients, is_right, terms, work
from tests.unit.connections.toy_transport import Pigeonholes, ToyTransport
from tests.unit.wire import transport_checks


@pytest.mark.parametrize("check", transport_checks.CHECKS, ids=lambda check: check.__name__)
def test_a_transport_of_ones_own_does_what_every_transport_does(check):
    holes = Pigeonholes()
    transport_checks.as_two_ranks(check, lambda rank: ToyTransport(holes, rank))


def test_a_job_trains_over_a_transport_of_ones_own():
    made, holes = terms(), Pigeonholes()
    servers = [server.new_server(made, index, ToyTransport(holes, index), [2], [0, 1],
                                 server.start_from(first_values())) for index in (0, 1)]
    transport = ToyTransport(holes, 2, on_wait=lambda: any([one.advance() for one in servers]))
    assert is_right(work(WorkerConnection(made, Uplink(0, transport, [0, 1])), 0), 1)


def test_a_mode_of_ones_own_is_one_line_in_the_table(monkeypatch):
    monkeypatch.setitem(modes.MODES, toy_mode.MODE.name, toy_mode.MODE)
    made, prepare = terms()._replace(mode="every_other"), server.start_from(first_values())
    connection = WorkerConnection(made, server.embedded(made, [prepare, prepare]))
    found = work(connection, 0)
    assert connection.client.pushes == 2 and connection.steps == 4
    # Of rows, SGD: those of the second and the fourth step.
    expected = first_values()["users"]
    for step in (1, 3):
        _, ids, rows = gradients(0, step)
        expected[ids] -= RATE * rows
    assert np.array_equal(found["users"], expected)
