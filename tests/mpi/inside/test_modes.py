"""Every mode over MPI: it learns, and no batch is lost or applied twice."""

import numpy as np
import pytest

from fleet_mpi import modes
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.placement import Variable, place
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


def train(client, mode, options, workers, steps):
    """A worker's life; returns how far its parameters are from the truth at the end."""
    half, own = modes.worker_half(mode, client, options, workers), Worker(client)
    client.rates[...] = 0.3 if mode in ("sync", "half_async") else 0.1 / workers
    client.collect(client.pull())
    half.restart()
    for step in range(steps):
        problem.gradient(own, client.index, step)
        if mode == "geo":
            for name, param in own.params(0).items():
                param -= np.float32(0.1) * own.grads(0)[name]
        half.after_backward()
    half.finish()
    client.collect(client.pull())
    client.leave()
    return problem.distance(own.params(0))


def run(transport, mode, options, variables, steps):
    """(batches per worker that a server applied, what they should be, how far a worker is from the truth)."""
    servers = max(1, transport.comm.size // 2)
    workers, ranks = transport.comm.size - servers, list(range(transport.comm.size))
    described = Description(place(variables, servers), {one.name: recipe("sgd", "rate") for one in variables},
                            ("rate",))
    counts, distance = [steps] * workers, 0.0
    if transport.rank < servers:
        server = Server(transport, transport.rank, ranks[servers:], ranks[:servers], described,
                        modes.server_half(mode, options, workers))
        server.serve()
        counts = getattr(server.mode, "batches", server.applied)
    else:
        client = Client(transport, transport.rank - servers, ranks[:servers], described)
        distance = train(client, mode, options, workers, steps)
    transport.comm.Barrier()
    return counts, [steps] * workers, distance


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
