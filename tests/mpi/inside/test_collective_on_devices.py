"""Collective training over MPI with every worker on the stand-in for a GPU: from its memory, or through the host."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective.group import Group
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime import collective_sessions
from fleet_mpi.testing import DeviceArray
from fleet_mpi.transpile.collective import Options, plan_of, rewrite
from tests.exact.cells import CELLS, built, feed_of
from tests.unit.program.building import from_scratch
from tests.unit.program.ops.checking import StandInPlace


@pytest.fixture
def comm():
    """A communicator of our own."""
    from mpi4py import MPI
    made = MPI.COMM_WORLD.Dup()
    yield made
    made.Free()


def train(comm, place):
    """The parameters of this worker after training, and its session."""
    cell = CELLS["adam"]
    with from_scratch():
        made = built(cell)
    plan = plan_of(made.main, comm.size, comm.rank, Options(fuse_mb=0.001, last_mb=0.001))
    rewrite(made.main, made.startup, plan)
    scope, executor = Scope(), Executor(place)
    executor.worker = comm.rank
    session = collective_sessions.connect(plan, scope, Group.over_mpi(comm.rank, [comm], "worker {}".format))
    executor.run(made.startup, scope=scope)
    for step in range(cell.steps):
        executor.run(made.main, feed=feed_of(made.main, comm.rank, step), fetch_list=[made.loss], scope=scope)
    return {one.name: scope.array(one.name) for one in made.main.all_parameters()}, session


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("variant, aware", (("fast", "yes"), ("fast", "no"), ("exact", "yes"), ("exact", "no")))
def test_workers_on_devices_train_as_those_on_the_host(comm, variant, aware):
    with settings.override(FLEET_MPI_ALLREDUCE=variant, FLEET_MPI_CUDA_AWARE=aware):
        found, session = train(comm, StandInPlace())
        expected, _ = train(comm, CPUPlace())
    assert [one.is_aware for one in session.reducers] == [aware == "yes"]
    for name, array in found.items():
        assert isinstance(array, DeviceArray)
        np.testing.assert_allclose(array.get(), expected[name], rtol=1e-4, atol=1e-5)
        assert len(set(comm.allgather(array.get().tobytes()))) == 1, "workers have come apart"
