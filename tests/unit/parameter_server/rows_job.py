"""A job over loopback with tables that travel by rows, and what one process makes of the same gradients."""

import numpy as np

from fleet_mpi import update_rules
from fleet_mpi.arrays import Rows
from fleet_mpi.modes.sync import SyncServer
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import BoundNorm, Decay, recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.parameter_server.tables.rows import RowTableDescription
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire.loopback import Network

DENSE = (Variable("bias", (7,)), Variable("weights", (40, 30)))
TABLES = (Variable("items", (5000, 9)), Variable("users", (2100, 8)), Variable("words", (60, 4), "float64"))
RATE = 0.1


def described(servers, made=None, method="RoundRobin", slice_up=True, min_block_size=8192, dense=DENSE, tables=TABLES):
    """What the ranks of a job know; ``made`` is the recipe of every variable."""
    placed = place((*dense, *tables), servers, method, slice_up, min_block_size)
    recipes = {one.name: made or recipe("sgd", "lr") for one in (*dense, *tables)}
    by_rows = tuple(RowTableDescription(one.name, one.shape, one.dtype, placed.of_variable(one.name), recipes[one.name])
                    for one in tables)
    return Description(placed.only({one.name for one in dense}), recipes, ("lr",), by_rows)


def fill(server, values):
    """Give a server its part of these parameters."""
    for table in server.tables:
        for shard in table.shards():
            line = values[shard.variable].reshape(-1)[shard.offset:shard.offset + shard.size]
            table.param(shard.variable, shard.block)[...] = line.reshape(shard.shape)


def start_push(client, given):
    """Push one worker's gradients, {variable: array or Rows or None}; returns the ticket."""
    for name, view in client.layout.views(client.grads).items():
        view[...] = given[name]
    return client.push_pull([given[table.name] for table in client.description.row_tables])


def values_at(client):
    """All parameters, tables included, as a worker gets them."""
    tables = client.description.row_tables
    found = {name: view.copy() for name, view in client.layout.views(client.params).items()}
    rows = client.pull_rows({number: np.arange(table.height) for number, table in enumerate(tables)})
    return found | {table.name: rows[number] for number, table in enumerate(tables)}


class RowsJob:
    """Ranks 0 to servers - 1 serve, the rest work; more arguments are those of ``described``."""

    def __init__(self, servers=2, workers=1, made=None, method="RoundRobin", slice_up=True, largest=None, **options):
        self.network, self.description = Network(), described(servers, made, method, slice_up, **options)
        ranks = list(range(servers))
        self.servers = [Server(self.network.transport(rank), rank, list(range(servers, servers + workers)), ranks,
                               self.description, SyncServer(), largest=largest) for rank in ranks]
        self.clients = [Client(self.network.transport(servers + index), index, ranks, self.description,
                               largest=largest) for index in range(workers)]
        for client in self.clients:
            client.transport.on_wait = self.pump
            client.rates[...] = RATE

    def pump(self):
        """Let every server do what is ready."""
        for server in self.servers:
            server.advance()

    def fill(self, values):
        """Give the servers these parameters."""
        for server in self.servers:
            fill(server, values)

    def round(self, gradients):
        """One synchronous step with the gradients of each worker that still trains."""
        tickets = [start_push(client, given) for client, given in zip(self.clients, gradients, strict=True)]
        for client, ticket in zip(self.clients, tickets, strict=True):
            client.collect(ticket)

    def leave(self, worker):
        """Let a worker, the last one, go."""
        self.clients.pop(worker).leave()
        self.pump()

    def values(self):
        """All parameters as the first worker gets them."""
        return values_at(self.clients[0])


def first_values(variables=(*DENSE, *TABLES), seed=0):
    """Values for all variables."""
    rng = np.random.default_rng(seed)
    return {one.name: rng.normal(size=one.shape).astype(one.dtype) for one in variables}


def drawn_gradients(workers, seed, variables=(*DENSE, *TABLES)):
    """One worker's gradients each: rows with ids that repeat, some only with one worker."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(workers):
        given = {one.name: rng.normal(size=one.shape).astype(one.dtype) for one in variables}
        for table in TABLES:
            ids = rng.integers(0, table.shape[0], 150)
            ids[:40] = rng.integers(0, 20, 40)
            values = rng.normal(size=(150, table.shape[1])).astype(table.dtype)
            given[table.name] = Rows(ids, values, table.shape[0])
        found.append(given)
    return found


class OneProcess:
    """The same training on whole arrays, written down without any kernel of rows."""

    def __init__(self, values, made):
        self.values = {name: array.copy() for name, array in values.items()}
        self.made, self.rule = made, update_rules.RULES[made.rule]
        self.hypers = self.rule.complete({name: value for name, value in made.hypers if name in self.rule.hypers})
        self.states = {name: self.rule.new_states(array) for name, array in self.values.items()}

    def round(self, gradients):
        """Average over the workers in order, then the recipe."""
        means, touched = {}, {}
        for name in self.values:
            parts = [to_dense(given[name]) for given in gradients]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            means[name] = total * (1.0 / len(parts)) if len(parts) > 1 else total
            rows = [given[name].ids for given in gradients if isinstance(given[name], Rows)]
            touched[name] = np.unique(np.concatenate(rows)) if rows else None
        for step in self.made.steps:
            self._step(step, means, touched)
        for name, array in self.values.items():
            grad = means[name] if touched[name] is None else Rows(touched[name], means[name][touched[name]], len(array))
            self.rule.run(array, grad, np.array([RATE], np.float32), *self.states[name], **self.hypers)

    def _step(self, step, means, touched):
        squares = {name: update_rules.square_sum(mean) for name, mean in means.items()}
        together = sum((squares[name] for name in sorted(squares)[1:]), squares[min(squares)])
        for name, mean in means.items():
            if isinstance(step, BoundNorm):
                mean *= step.factor(together if step.group else squares[name]).astype(mean.dtype)
            else:
                step.apply(mean, self.values[name], np.empty_like(mean))
            if isinstance(step, Decay):
                touched[name] = None


def to_dense(gradient):
    """A gradient as an array."""
    return gradient.to_dense() if isinstance(gradient, Rows) else gradient.copy()


def one_table(job_options=None, shape=(50, 4), made=None):
    """A job with one table of zeros, and nothing else."""
    return RowsJob(dense=(), tables=(Variable("table", shape),), made=made, **(job_options or {}))


def rows_of(ids, values, height=50):
    """Rows, four wide, whose elements are all the value given for each."""
    return Rows(np.array(ids), np.array(values, np.float32).reshape(len(ids), -1) * np.ones((1, 4), np.float32), height)
