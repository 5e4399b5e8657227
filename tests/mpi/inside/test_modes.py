"""Every mode over MPI: it learns, and no batch is lost or applied twice."""

import numpy as np
import pytest

from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable, place
from tests.mpi.inside.halves import servers_among, take_part
from tests.unit.modes.loop import VARIABLES, LeastSquares

# Nothing bounds how far a worker gets while messages travel, but the queue.
APART = dict(independent_recv_thread=True, thread_pool_size=2, max_merge_var_num=2, send_queue_size=2)
EVERY = (("sync", {}), ("async", {}), ("async", APART), ("half_async", {"max_merge_var_num": 2}),
         ("geo", {"k_steps": 3}), ("delay_compensated", {"adaptive": True, "lambda_": 0.1}),
         ("bounded_staleness", {"bound": 1}))
STEPS, FEW_STEPS = 60, 7
# Long enough to travel in pieces that are not sent at once.
LONG = Variable("long", (600_000,))
problem = LeastSquares()


@pytest.fixture(scope="module")
def transport():
    """A transport with a communicator of its own."""
    from mpi4py import MPI

    from fleet_mpi.wire.mpi import MPITransport
    return MPITransport(MPI.COMM_WORLD.Dup())


class Worker:
    """This rank as the one worker that ``LeastSquares`` sees."""

    def __init__(self, client):
        self.client = client

    def params(self, worker):
        """Its parameters by name."""
        return self.client.layout.views(self.client.params)

    def grads(self, worker):
        """Its gradients by name."""
        return self.client.layout.views(self.client.grads)


def train(connection, steps):
    """A worker's life; returns how far its parameters are from the truth at the end."""
    client, own, mode = connection.client, Worker(connection.client), connection.terms.mode
    client.rates[...] = 0.3 if mode in ("sync", "half_async") else 0.1 / connection.terms.workers
    connection.pull()
    for step in range(steps):
        problem.gradient(own, client.index, step)
        if mode == "geo":
            for name, param in own.params(0).items():
                param -= np.float32(0.1) * own.grads(0)[name]
        connection.exchange()
    connection.flush()
    client.collect(client.pull())
    client.leave()
    return problem.distance(own.params(0))


def run(transport, mode, options, variables, steps):
    """(batches per worker that a server applied, what they should be, how far a worker is from the truth)."""
    servers = servers_among(transport.comm.size)
    described = Description(place(variables, servers), {one.name: recipe("sgd", "rate") for one in variables},
                            ("rate",))
    expected = [steps] * (transport.comm.size - servers)
    server, distance = take_part(transport, described, lambda connection: train(connection, steps), mode, options)
    counts = expected if server is None else getattr(server.mode, "batches", server.applied)
    transport.comm.Barrier()
    return counts, expected, distance or 0.0


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("mode, options", EVERY)
def test_a_mode_learns_and_loses_nothing(transport, mode, options):
    counts, expected, distance = run(transport, mode, options, VARIABLES, STEPS)
    assert counts == expected and distance < 0.5


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("mode, options", EVERY)
def test_long_images_lose_nothing(transport, mode, options):
    counts, expected, distance = run(transport, mode, options, (*VARIABLES, LONG), FEW_STEPS)
    assert counts == expected and np.isfinite(distance)
