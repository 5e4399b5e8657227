"""The ranks of ``benchmarks.sparse``: rank 0 keeps a growing table, rank 1 pulls, pushes and prints what it measured.

*raw* sends the same bytes by blocking mpi4py calls, between buffers at hand; the server neither finds nor updates.
"""

import json
import os
import sys
import time

import numpy as np
from mpi4py import MPI

from benchmarks import mpi_ranks
from benchmarks.sparse_ids import BATCH, DRAWS, drawn, ids_of
from benchmarks.sparse_tables import KEY, WIDTH
from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.connections.server import new_server
from fleet_mpi.connections.terms import Terms, Uplink
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.parameter_server import tables
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.growing.description import with_keys
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire.mpi import MPITransport

SERVER, WORKER = 0, 1


def main(ids, options):
    """Measure with ids drawn in this way."""
    comm = MPI.COMM_WORLD.Dup()
    found = rates(comm, ids, **options)
    if comm.rank == WORKER:
        print(json.dumps(found), flush=True)


def rates(comm, ids, rows, batches, rounds):
    """{way: seconds, CPU seconds of each rank, and rows, of each round}; ways take turns."""
    served = Served(comm, rows)
    drawn_ids = drawn(DRAWS[ids], rows, batches) if comm.rank == WORKER else [None] * batches
    raw = Raw(comm, drawn_ids)
    ways = {"pull": served.pull, "raw pull": raw.pull, "push": served.push, "raw push": raw.push}
    found = {way: {"seconds": [], "cpu_s": [], "rows": 0} for way in ways}
    processes = comm.allgather(os.getpid())
    for number in range(rounds + 1):
        for way, run in ways.items():
            mpi_ranks.quiet_barrier(comm)
            used, began = mpi_ranks.cpu_s(processes), time.perf_counter()
            count = run(drawn_ids)
            seconds = time.perf_counter() - began
            if number:   # the first round compiles
                found[way]["rows"] = count
                found[way]["seconds"].append(seconds)
                found[way]["cpu_s"].append((mpi_ranks.cpu_s(processes) - used).tolist())
    served.close()
    return found


class Served:
    """The table on rank 0, in synchronous mode, and what rank 1 does with it."""

    def __init__(self, comm, rows):
        self.comm = comm
        adagrad = with_keys(recipe("adagrad", "rate", initial_accumulator_value=0.1), "sparse")
        table = tables.described("growing", "sparse", WIDTH, "float32", adagrad, ("uniform", -0.1, 0.1), KEY)
        description = Description(place([Variable("w", (1,))], 1), {"w": recipe("sgd", "rate")}, ("rate",), (table,))
        transport, terms = MPITransport(comm.Dup()), Terms(description, ("server 0",), 1)
        if comm.rank == SERVER:
            self.server = new_server(terms, 0, transport, [WORKER], [SERVER], lambda server: None)
            self.server.serve(until=lambda: self.server.stalls.greeted)
            for begin in range(0, rows, BATCH):
                self.server.row_tables[0].store.add(ids_of(np.arange(begin, min(begin + BATCH, rows))))
        else:
            self.client = WorkerConnection(terms, Uplink(0, transport, [SERVER])).client
            self.client.rates[...] = 0.05
            self.out, self.grads = np.empty((BATCH, WIDTH), np.float32), np.full((BATCH, WIDTH), 1e-3, np.float32)

    def pull(self, batches):
        """Rows of the ids of each batch; returns how many."""
        return self._in_turn(self._pull, batches)

    def push(self, batches):
        """Gradients of the ids of each batch, merged here; returns how many rows travelled."""
        return self._in_turn(self._push, batches)

    def _pull(self, batch):
        self.client.pull_rows({0: batch.ids}, {0: [self.out]})
        return len(batch.ids)

    def _push(self, batch):
        self.client.collect(self.client.push([Rows(batch.ids, self.grads, ANY_HEIGHT)]))
        return len(batch.merged)

    def _in_turn(self, run, batches):
        """On rank 1 run all; rank 0 serves meanwhile."""
        if self.comm.rank == WORKER:
            count = sum(run(batch) for batch in batches)
            self.comm.send(None, SERVER)
            return count
        over = self.comm.irecv(source=WORKER)
        self.server.serve(until=lambda: over.test()[0])
        return 0

    def close(self):
        """Say goodbye."""
        if self.comm.rank == WORKER:
            self.client.leave()
        else:
            self.server.serve()


class Raw:
    """The same bytes by blocking calls."""

    def __init__(self, comm, batches):
        self.comm = comm
        self.merged = comm.bcast([len(one.merged) for one in batches] if comm.rank == WORKER else None, WORKER)
        self.ids, self.rows = np.zeros(BATCH, np.int64), np.zeros((BATCH, WIDTH), np.float32)
        self.answer = np.zeros(1, np.int64)

    def pull(self, batches):
        """Merged ids there, their rows back."""
        for count in self.merged:
            self._there(self.ids[:count])
            self._back(self.rows[:count])
        return sum(len(batch.ids) for batch in batches) if self.comm.rank == WORKER else 0

    def push(self, batches):
        """Merged ids and rows there, a word back."""
        for count in self.merged:
            self._there(self.ids[:count])
            self._there(self.rows[:count])
            self._back(self.answer)
        return sum(self.merged)

    def _there(self, array):
        if self.comm.rank == WORKER:
            self.comm.Send(array, SERVER)
        else:
            self.comm.Recv(array, WORKER)

    def _back(self, array):
        if self.comm.rank == WORKER:
            self.comm.Recv(array, SERVER)
        else:
            self.comm.Send(array, WORKER)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
