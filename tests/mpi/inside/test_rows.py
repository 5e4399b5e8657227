"""Tables by rows over MPI: every cut of every world gives the bits of one process."""

import numpy as np
import pytest

from fleet_mpi.parameter_server.recipes import BoundNorm, Decay, recipe
from tests.mpi.inside.halves import servers_among, take_part
from tests.unit.parameter_server.rows_job import (
    RATE,
    OneProcess,
    described,
    drawn_gradients,
    fill,
    first_values,
    start_push,
    values_at,
)

RECIPES = {"sgd": recipe("sgd", "lr"), "clipped adam": recipe("adam", "lr", (BoundNorm(1.0, "all"), Decay(0.01)))}


@pytest.fixture(scope="module")
def transport():
    """A transport with a communicator of its own."""
    from mpi4py import MPI

    from fleet_mpi.wire.mpi import MPITransport
    return MPITransport(MPI.COMM_WORLD.Dup())


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("method, slice_up, largest", (("RoundRobin", True, None), ("HashName", True, 1024),
                                                       ("Balanced", False, None)))
def test_a_job_has_the_bits_of_one_process(transport, name, method, slice_up, largest):
    description = described(servers_among(transport.comm.size), RECIPES[name], method, slice_up)
    take_part(transport, description, lambda connection: work(connection, OneProcess(first_values(), RECIPES[name])),
              prepare=lambda server: fill(server, first_values()), largest=largest)
    transport.comm.Barrier()


def work(connection, alone):
    """Some rounds as one worker; compare before leaving."""
    client = connection.client
    client.rates[...] = RATE
    for step in range(3):
        gradients = drawn_gradients(connection.terms.workers, step)
        client.collect(start_push(client, gradients[client.index]))
        alone.round(gradients)
    found = values_at(client)
    client.leave()
    for variable, array in found.items():
        np.testing.assert_array_equal(array, alone.values[variable], variable)
