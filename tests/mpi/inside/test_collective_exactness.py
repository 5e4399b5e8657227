"""Collective training over MPI: on any number of ranks, the bits of one process that sums.

Cells and the one process are those of tests/exact. Every world size takes some of the cells; together they take all.
"""

import random
import time

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective import exact
from fleet_mpi.collective.group import Group
from tests.exact.averaging import differences, digest
from tests.exact.cells import CELLS
from tests.exact.summing import summed
from tests.exact.together import Together, ways

EVEN = {name: cell for name, cell in CELLS.items() if not cell.ends}
GROUPS = 3   # a test has a minute, and the machine may have more ranks than cores
_lanes = []  # communicators of this file, made once: a world has not room for thousands


@pytest.fixture
def world():
    """mpi4py's world."""
    from mpi4py import MPI
    return MPI.COMM_WORLD


def group_of(world, lanes, shares_memory):
    """This rank in a group over communicators of its own."""
    while len(_lanes) < lanes:
        _lanes.append(world.Dup())
    made = Group.over_mpi(world.rank, _lanes[:lanes], "worker {}".format)
    made.shares_memory = shares_memory
    return made


def trained(world, number, cell, **options):
    """(digest of this rank's state, digest of its parameters) after a cell; half of the cells go by shared memory."""
    taken = {**ways(number), **options}
    job = Together(cell, world.size, **taken)
    state = job.work(group_of(world, taken["comms"], number % 2 == 0))
    return digest(state), digest(job.parameters())


def wrong(world, chosen, nodes=None, **options):
    """The cells that did not come to the bits of one process, or not on every rank; the same on every rank."""
    ends = {cell.name: trained(world, number, cell, **options) for number, cell in chosen}
    every = world.allgather(ends)
    # Each rank does some of the cells in one process.
    mine = {cell.name: digest(summed(cell, world.size, nodes)) for _, cell in chosen[world.rank::world.size]}
    alone = {name: found for one in world.allgather(mine) for name, found in one.items()}
    if world.rank == 0:
        for name, (state, _) in ends.items():
            print(f"exact: {name}; {world.size} workers; {alone[name][:16]} {state[:16]}", flush=True)
    assert len(alone) == len(chosen)
    return [name for name in ends if every[0][name][0] != alone[name] or len({one[name][1] for one in every}) > 1]


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("group", range(GROUPS))
def test_ranks_give_the_bits_of_one_process(world, group):
    mine = [(number, cell) for number, cell in enumerate(EVEN.values()) if number % 4 == world.size % 4]
    assert not wrong(world, mine[group::GROUPS])


@pytest.mark.mpi(min_size=2)
def test_messages_and_shared_memory_give_the_same_bits(world, monkeypatch):
    monkeypatch.setattr(exact, "SMALLEST", 256)
    for name in ("clip by global norm", "rows, lamb"):
        assert not wrong(world, [(2, EVEN[name])]) and not wrong(world, [(3, EVEN[name])])


@pytest.mark.mpi(min_size=4, max_size=4)
def test_ranks_give_the_bits_of_nodes(world):
    chosen = [(number, EVEN[name]) for number, name in enumerate(("adam", "clip by global norm", "float64, norms"))]
    assert not wrong(world, chosen, nodes=[[0, 1], [2, 3]], by_node=True, node_ranks=2)


@pytest.mark.mpi(min_size=2)
def test_the_library_gives_nearly_the_same_and_the_same_on_all_ranks(world, monkeypatch):
    monkeypatch.setattr(settings, "get",
                        lambda name, get=settings.get: "fast" if name == "FLEET_MPI_ALLREDUCE" else get(name))
    for name in ("momentum", "rows, adam"):
        job = Together(EVEN[name], world.size, fuse_mb=0, last_mb=0, comms=2)
        state = job.work(group_of(world, 2, False))
        assert len(set(world.allgather(digest(job.parameters())))) == 1
        right = summed(EVEN[name], world.size)
        assert all(np.allclose(state[one], right[one], rtol=1e-3, atol=1e-5) for one in job.trained)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("lanes", (1, 3))
@pytest.mark.parametrize("kind", ("exact", "library"))
def test_ranks_that_come_at_any_time_neither_meet_the_wrong_arrays_nor_each_other_for_ever(world, kind, lanes):
    group, rng = group_of(world, lanes, False), random.Random(world.rank)
    reducers = (group.library_reducers() if kind == "library" else
                [exact.ExactAllReduce(lane, group.ranks, 1 << 12) for lane in group.lanes])
    for round in range(5):
        lengths = [(7 * number * number + round) % 5000 + 1 for number in range(12)]
        arrays = [np.full(length, number + world.rank, "float32") for number, length in enumerate(lengths)]
        under_way = []
        for number, array in enumerate(arrays):
            under_way.append(reducers[number % lanes].start(array))
            for one in under_way:
                one.advance()
            time.sleep(rng.random() * 0.002)
        group.finish(under_way, "the test")
        for number, array in enumerate(arrays):
            assert (array == sum(number + rank for rank in range(world.size))).all()


@pytest.mark.mpi(min_size=2)
def test_first_values_are_those_of_worker_0(world):
    job = Together(EVEN["frozen layer"], world.size)
    settings_before = settings.get("FLEET_MPI_SEED")
    settings.put("FLEET_MPI_SEED", 1000 + world.rank)  # each would draw others
    try:
        state = job.work(group_of(world, 1, True))
    finally:
        settings.put("FLEET_MPI_SEED", settings_before)
    states = world.allgather(state)
    assert not differences(states[0], states[-1])
