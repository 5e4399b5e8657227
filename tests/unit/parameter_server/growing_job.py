"""A job over loopback with one table, which grows or has a height: the same draws, the same gradients."""

import hashlib

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.kernels.reference import random
from fleet_mpi.modes.sync import SyncServer
from fleet_mpi.parameter_server import tables
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.parameter_server.tables.growing.description import first_values, with_keys
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire.loopback import Network

HEIGHT, WIDTH = 900, 5
INIT, KEY, RATE = ("normal", 0.0, 1.0), random.key_of(7, "table", "t"), 0.1
SGD = recipe("sgd", "lr")
DENSE = Variable("w", (30, 7))


def described(made, height, servers, dtype="float32", init=INIT):
    """A table's description, by its height."""
    if height == ANY_HEIGHT:
        return tables.described("growing", "t", WIDTH, dtype, with_keys(made, "t"), init, KEY)
    placed = place([Variable("t", (height, WIDTH), dtype)], servers, min_block_size=60)
    return tables.described("rows", "t", (height, WIDTH), dtype, placed.of_variable("t"), made)


def first_rows(ids, dtype="float32"):
    """What rows of these ids begin with."""
    out = np.empty((len(ids), WIDTH), dtype)
    first_values(INIT, KEY)(np.asarray(ids, np.int64), out)
    return out


class GrowingJob:
    """Ranks 0 to servers - 1 serve, the rest work. ``recipe_of_dense`` is that of the one dense variable."""

    def __init__(self, servers=1, workers=1, made=SGD, height=ANY_HEIGHT, mode=SyncServer, dtype="float32", init=INIT,
                 recipe_of_dense=SGD, largest=None):
        self.network, ranks, self.height = Network(), list(range(servers)), height
        self.description = Description(place([DENSE], servers), {"w": recipe_of_dense}, ("lr",),
                                       (described(made, height, servers, dtype, init),))
        self.servers = [Server(self.network.transport(rank), rank, list(range(servers, servers + workers)), ranks,
                               self.description, mode(), largest=largest) for rank in ranks]
        self.clients = [Client(self.network.transport(servers + index), index, ranks, self.description,
                               largest=largest) for index in range(workers)]
        for client in self.clients:
            client.transport.on_wait = self.pump
            client.rates[...] = RATE
        for server in self.servers:
            table = server.table_of("t")
            for shard in table.shards():
                table.param("t", shard.block)[...] = first_rows(np.arange(height), dtype)[
                    shard.row_begin:shard.row_begin + shard.rows]

    def pump(self):
        """Let every server do what is ready."""
        for server in self.servers:
            server.advance()

    def rows(self, ids, values):
        """A row gradient."""
        return Rows(np.array(ids, np.int64), values, self.height)

    def round(self, pushed):
        """One push of each worker: (ids, gradients) or None."""
        tickets = [client.push_pull([None if one is None else self.rows(*one)])
                   for client, one in zip(self.clients, pushed, strict=True)]
        for client, ticket in zip(self.clients, tickets, strict=True):
            client.collect(ticket)

    def pull(self, ids):
        """Rows, by the last worker."""
        return self.clients[-1].pull_rows({0: np.array(ids, np.int64)})[0]

    def digest(self, ids):
        """Of all values, by id."""
        return hashlib.sha256(self.pull(ids).tobytes()).hexdigest()

    @property
    def counts(self):
        """How many rows each server stores."""
        return [server.table_of("t").store.count for server in self.servers]


def drawn(worker, step, ids, dtype="float32"):
    """(ids, gradients) of a worker's step: ids repeat, a step is empty, and one has many more than the others."""
    draw = np.random.default_rng([worker, step])
    count = 0 if (worker + step) % 4 == 3 else 20 + 150 * (step == 1)
    chosen = draw.choice(ids, size=count)
    return chosen, draw.normal(size=(count, WIDTH)).astype(dtype)
