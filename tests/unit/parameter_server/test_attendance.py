"""Servers show that they have begun, workers wait for that; and processes that joined a job but take no part in it."""

import threading

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost, Stalled, UsageError
from fleet_mpi.parameter_server.attendance import announce, await_servers, leave, refuse_workers
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable
from fleet_mpi.ranks import waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire.loopback import Network
from tests.unit.parameter_server.loopback_job import Job

NAMES = ["server 0", "server 1", "worker 0", "worker 1"].__getitem__


def test_workers_go_on_when_all_servers_have_begun():
    network = Network()
    sends = announce(network.transport(0), 0, [2, 3]) + announce(network.transport(1), 1, [2, 3])
    for worker in (2, 3):
        await_servers(network.transport(worker), worker - 2, [0, 1], NAMES)
    assert all(one.done() for one in sends)


@pytest.mark.parametrize("worker", (2, 3))
def test_a_server_that_has_not_begun_is_named_by_the_first_worker(monkeypatch, worker):
    network = Network()
    announce(network.transport(0), 0, [2, 3])
    monkeypatch.setattr(waiting, "deadline_s", lambda: 0.05)
    with pytest.raises(Stalled, match="^server 1 has not begun to serve") as told:
        await_servers(network.transport(worker), worker - 2, [0, 1], NAMES)
    assert told.value.reported_by_peer == (worker == 3)


def test_noise_is_refused():
    network = Network()
    network.transport(0).post_send(2, Channel.ANNOUNCEMENT, np.full(64, 7, np.uint8))
    with pytest.raises(PeerLost, match="server 0 sent a damaged header"):
        await_servers(network.transport(2), 0, [0], NAMES)


def test_servers_end_when_workers_leave_that_never_connected():
    job = Job(2, 2, [Variable("x", (4, 5))], recipe("sgd", "lr"))
    for index, client in enumerate(job.clients):
        leave(client.transport, index, [0, 1])
    for server in job.servers:
        server.serve()
        assert not server.active


def test_a_server_that_does_not_serve_stays_until_all_workers_have_left():
    network = Network()
    turning = threading.Thread(target=refuse_workers, args=(network.transport(0), 0, [1, 2]), daemon=True)
    turning.start()
    leave(network.transport(1), 0, [0])
    turning.join(0.3)
    assert turning.is_alive()
    leave(network.transport(2), 1, [0])
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
            refuse_workers(network.transport(0), 0, [1], names)
        except UsageError as error:
            refused.append(str(error))
    turning = threading.Thread(target=turn)
    turning.start()
    with pytest.raises(UsageError, match="^server 0 says: worker 0 wants to train") as told:
        client.hello({})
    turning.join(10)
    assert told.value.reported_by_peer
    assert refused == ["worker 0 wants to train, but the script of server 0 has ended without serving: a server must "
                       "call fleet.run_server(), or run the program of get_pserver_program"]
