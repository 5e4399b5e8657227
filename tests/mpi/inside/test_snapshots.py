"""Servers stand still at one moment while other ranks go on pushing."""

import numpy as np
import pytest

from fleet_mpi.parameter_server.description import Description, param
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.placement import Variable, place
from tests.mpi.inside.halves import servers_among, take_part

# The first one is more than a message: it travels in pieces.
VARIABLES = [Variable("long", (1000, 300)), Variable("b", (7,)), Variable("c", (90, 100))]
PUSHES = 8


@pytest.fixture
def comm():
    """A communicator of this test alone."""
    from mpi4py import MPI
    made = MPI.COMM_WORLD.Dup()
    yield made
    made.Free()


def push_all(client):
    """With a rate of 1 and gradients of -1, every element is the number of pushes that it has seen."""
    client.rates[...] = 1.0
    for _ in range(PUSHES):
        for view in client.layout.views(client.grads).values():
            view[...] = -1.0
        client.collect(client.push_pull())


def snapshots(client, pushers):
    """Every moment that is looked at is one, and they come in order."""
    state, moments = ServerState(client), []
    while not moments or moments[-1] < pushers * PUSHES:
        # In turns: what the servers have while they stand still, and copies while they go on.
        with state.frozen() if len(moments) % 2 else state.copied([param(one.name) for one in VARIABLES]):
            seen = {float(value) for one in VARIABLES for value in np.unique(state.fetch(param(one.name)))}
        assert len(seen) == 1, seen
        moments += seen
    assert moments == sorted(moments)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("mode", ("async", "sync"))
def test_what_is_fetched_has_the_same_pushes_everywhere(comm, mode):
    from fleet_mpi.wire.mpi import MPITransport
    described = Description(place(VARIABLES, servers_among(comm.size)),
                            {one.name: recipe("sgd", "lr") for one in VARIABLES}, ("lr",))
    take_part(MPITransport(comm), described, work, mode)


def work(connection):
    """Push, or look; in sync mode the one who looks pushes before."""
    client, mode, workers = connection.client, connection.terms.mode, connection.terms.workers
    if client.index > 0 or mode == "sync":
        push_all(client)
    if client.index == 0:
        snapshots(client, pushers=1 if mode == "sync" else workers - 1)
    client.leave()
