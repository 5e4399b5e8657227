"""Strategies of collective jobs over MPI: the bits that threads over loopback come to, which are those of the
formulas."""

import hashlib

import pytest

from fleet_mpi.collective.group import Group
from fleet_mpi.program.optimizers.plain import SGD, Adam, Momentum
from tests.exact.collective_networks import batches, line, normed, wide
from tests.exact.collective_workers import Worker, build, strategy, train, work

STEPS = 6
MERGED = {"k_steps": 2, "avg": True}
CELLS = {
    "local SGD": (line, lambda: Momentum(0.1, 0.9),
                  dict(localsgd=True, localsgd_configs={"k_steps": 2, "begin_step": 2})),
    "adaptive local SGD": (line, lambda: SGD(0.1), dict(adaptive_localsgd=True,
                                                        adaptive_localsgd_configs={"init_k_steps": 3})),
    "merged gradients": (line, lambda: SGD(0.1), dict(gradient_merge=True, gradient_merge_configs=MERGED)),
    "compression": (wide, lambda: Momentum(0.05, 0.9), dict(dgc=True, dgc_configs={"rampup_begin_step": 2,
                                                                                   "sparsity": [0.99]})),
    "lars": (line, lambda: Momentum(0.1, 0.9), dict(lars=True)),
    "lamb": (line, lambda: Adam(0.1), dict(lamb=True)),
    "float16": (wide, lambda: SGD(0.1), dict(fp16_allreduce=True)),
    "mixed precision, merged": (line, lambda: SGD(0.1),
                                dict(amp=True, gradient_merge=True, gradient_merge_configs=MERGED)),
    "batch norm of all": (normed, lambda: SGD(0.1), dict(sync_batch_norm=True)),
}


def digest(worker, job):
    """Of the parameters."""
    found = hashlib.sha256()
    for value in worker.values(job).values():
        found.update(value.tobytes())
    return found.hexdigest()


def made(name, workers):
    """(the job, its batches)."""
    network, optimizer, switches = CELLS[name]
    return build(network, optimizer(), strategy(**switches), workers), batches(STEPS, workers)


@pytest.fixture
def world():
    """mpi4py's world."""
    from mpi4py import MPI
    return MPI.COMM_WORLD


@pytest.fixture(scope="module")
def comms():
    """Communicators of these tests alone."""
    from mpi4py import MPI
    return [MPI.COMM_WORLD.Dup()]


def trained(name, world, comms):
    """The digests of all workers' parameters after training over MPI."""
    job, feeds = made(name, world.size)
    worker = Worker()
    work(worker, job, Group.over_mpi(world.rank, comms, str), [step[world.rank] for step in feeds])
    return world.allgather(digest(worker, job))


@pytest.mark.mpi(min_size=2, max_size=4)
def test_ranks_come_to_the_bits_of_threads(world, comms):
    found = {name: trained(name, world, comms) for name in CELLS}
    mine = {}
    for name in list(CELLS)[world.rank::world.size]:
        job, feeds = made(name, world.size)
        mine[name] = [digest(worker, job) for worker in train(job, feeds)[0]]
    expected = {name: one for part in world.allgather(mine) for name, one in part.items()}
    assert found == expected
    apart = {name for name, digests in found.items() if len(set(digests)) > 1}
    assert apart <= {"adaptive local SGD"}, "all others end with a step after which workers have the same parameters"


@pytest.mark.mpi(min_size=2, max_size=4)
@pytest.mark.parametrize("name", ("local SGD", "batch norm of all", "compression", "float16"))
def test_the_librarys_own_sums_train_too(world, comms, name, monkeypatch):
    monkeypatch.setenv("FLEET_MPI_ALLREDUCE", "fast")
    digests = trained(name, world, comms)
    assert len(set(digests)) == 1
