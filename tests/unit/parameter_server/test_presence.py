"""Servers show that they have begun; workers wait for that."""

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost, Stalled
from fleet_mpi.parameter_server import presence
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import waiting
from fleet_mpi.wire.loopback import Network

NAMES = ["server 0", "server 1", "worker 0", "worker 1"].__getitem__


def test_workers_go_on_when_all_servers_have_begun():
    network = Network()
    sends = presence.show(network.transport(0), 0, [2, 3]) + presence.show(network.transport(1), 1, [2, 3])
    for worker in (2, 3):
        presence.wait_for(network.transport(worker), worker - 2, [0, 1], NAMES)
    assert all(one.done() for one in sends)


@pytest.mark.parametrize("worker", (2, 3))
def test_a_server_that_has_not_begun_is_named_by_the_first_worker(monkeypatch, worker):
    network = Network()
    presence.show(network.transport(0), 0, [2, 3])
    monkeypatch.setattr(waiting, "deadline", lambda: 0.05)
    with pytest.raises(Stalled, match="^server 1 has not begun to serve") as told:
        presence.wait_for(network.transport(worker), worker - 2, [0, 1], NAMES)
    assert told.value.told_elsewhere == (worker == 3)


def test_noise_is_refused():
    network = Network()
    network.transport(0).post_send(2, Channel.PRESENCE, np.full(64, 7, np.uint8))
    with pytest.raises(PeerLost, match="server 0 sent a damaged header"):
        presence.wait_for(network.transport(2), 0, [0], NAMES)
