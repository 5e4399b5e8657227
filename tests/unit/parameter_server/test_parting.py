"""Processes that joined a job and take no part in it."""

import threading

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server.parting import say_goodbye, turn_away
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable
from fleet_mpi.wire.loopback import Network
from tests.unit.parameter_server.loopback_job import Job


def test_servers_end_when_workers_leave_that_never_connected():
    job = Job(2, 2, [Variable("x", (4, 5))], recipe("sgd", "lr"))
    for index, client in enumerate(job.clients):
        say_goodbye(client.transport, index, [0, 1])
    for server in job.servers:
        server.serve()
        assert not server.active


def test_a_server_that_does_not_serve_stays_until_all_workers_have_left():
    network = Network()
    turning = threading.Thread(target=turn_away, args=(network.transport(0), 0, [1, 2]), daemon=True)
    turning.start()
    say_goodbye(network.transport(1), 0, [0])
    turning.join(0.3)
    assert turning.is_alive()
    say_goodbye(network.transport(2), 1, [0])
    turning.join(10)
    assert not turning.is_alive()


def test_a_worker_that_wants_to_train_is_told_and_so_is_everybody():
    job = Job(1, 1, [Variable("x", (4, 5))], recipe("sgd", "lr"))
    network, names = Network(), ["server 0", "worker 0"].__getitem__
    client, refused = job.clients[0], []
    client.transport = network.transport(1)
    client.links[0].name = "server 0"

    def turn():
        try:
            turn_away(network.transport(0), 0, [1], names)
        except UsageError as error:
            refused.append(str(error))
    turning = threading.Thread(target=turn)
    turning.start()
    with pytest.raises(UsageError, match="^server 0 says: worker 0 wants to train") as told:
        client.hello({})
    turning.join(10)
    assert told.value.told_elsewhere
    assert refused == ["worker 0 wants to train, but the script of server 0 has ended without serving: a server must "
                       "call fleet.run_server(), or run the program of get_pserver_program"]
