"""Exactness over MPI: with any roles among the ranks, the bits of one process that averages.

Cells and the one process are those of tests/exact. Every world size takes every other cell; together they take all.
"""

import pytest

from fleet_mpi.runtime import sessions
from fleet_mpi.wire import protocol
from tests.exact.averaging import averaged, digest
from tests.exact.cells import CELLS, layout
from tests.exact.spread import Spread

GROUPS = 3


def trained(number, cell, comm):
    """This rank's part in a cell; returns (workers of the cell, the state if this is its last worker, else None)."""
    from fleet_mpi.wire.mpi import MPITransport
    # Workers that end at different times must be several.
    servers = 1 if cell.ends else 1 + (number // 2) % min(4, comm.size - 1)
    # Servers are the first ranks or the last ones: numbers within a role must not be mistaken for ranks.
    ranks = list(range(comm.size)) if number % 4 < 2 else list(range(comm.size))[::-1]
    serving, working = ranks[:servers], ranks[servers:]
    spread = Spread(cell, layout(number, servers, len(working)))
    transport = MPITransport(comm)
    if comm.rank in serving:
        spread.new_server(serving.index(comm.rank), transport, serving, working).serve()
        return len(working), None
    worker = working.index(comm.rank)
    return len(working), spread.work(sessions.Uplink(worker, transport, serving, "rank {}".format))


def wrong(world, chosen):
    """The cells that did not come to the bits of one process; the same on every rank."""
    comms = [world.Dup() for _ in chosen]
    ends = {cell.name: trained(number, cell, comm) for (number, cell), comm in zip(chosen, comms)}
    mine = {name: digest(state) for name, (_, state) in ends.items() if state is not None}
    # Each rank does some of the cells in one process.
    right = {cell.name: digest(averaged(cell, ends[cell.name][0])) for _, cell in chosen[world.rank::world.size]}
    spread, alone = ({name: found for one in world.allgather(part) for name, found in one.items()}
                     for part in (mine, right))
    if world.rank == 0:
        for name, (workers, _) in ends.items():
            print(f"exact: {name}; {workers} workers, {world.size - workers} servers; {alone[name][:16]} "
                  f"{spread[name][:16]}", flush=True)
    assert len(alone) == len(spread) == len(chosen)
    return {name: (alone[name], spread[name]) for name in ends if alone[name] != spread[name]}


@pytest.fixture
def world():
    """mpi4py's world."""
    from mpi4py import MPI
    return MPI.COMM_WORLD


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("group", range(GROUPS))
def test_ranks_give_the_bits_of_one_process(world, group):
    mine = [(number, cell) for number, cell in enumerate(CELLS.values()) if number % 2 == world.size % 2]
    assert not wrong(world, mine[group::GROUPS])


@pytest.mark.mpi(min_size=2)
def test_pieces_and_cut_messages_give_the_same_bits(world, monkeypatch):
    for limit, nbytes in (("PIECE", 16384), ("LONG_RUN", 4096), ("LARGEST", 5000)):
        monkeypatch.setattr(protocol, limit, nbytes)
    chosen = ("momentum", "L2", "clip by global norm", "rows, adam", "uneven data")
    assert not wrong(world, [(number, CELLS[name]) for number, name in enumerate(chosen)])
