"""A table and an optimizer with norms of one's own: one file, which this is, and one line each."""

from typing import NamedTuple

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.arrays import Rows, aligned
from fleet_mpi.errors import UsageError
from fleet_mpi.modes.sync import SyncServer
from fleet_mpi.parameter_server import tables
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import Recipe, recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire.loopback import Network
from tests.unit.parameter_server.loopback_job import Job

WIDTH = 3


# ------------------------------------------------------------------ a table: any id is a row, which begins with zeros


class OfAnyIds(NamedTuple):
    """The description. Plain SGD with rate 1, whatever the recipe says."""

    name: str
    recipe: Recipe
    dtype: str = "float32"
    width: int = WIDTH

    @property
    def variables(self):
        """Itself."""
        return {self.name: self}

    def recipe_of(self, variable):
        """Its own."""
        return self.recipe

    def shards_of(self, variable):
        """Nothing is placed: ids are."""
        return ()

    def table(self, server, rates):
        """Begin with no row at all."""
        return AnyIds()

    def route(self, servers):
        """By the rest of the id."""
        return ByRest(servers)


class ByRest:
    """The last server has the last rest; ids travel as they are."""

    def __init__(self, servers):
        self.servers = servers

    def check(self, ids):
        """Every id is good."""

    def split(self, ids):
        """In a stable order."""
        servers = ids % self.servers
        order = np.argsort(servers, kind="stable")
        return ids[order], order, np.bincount(servers, minlength=self.servers)


class AnyIds:
    """Rows in a dictionary."""

    needs_norms = False

    def __init__(self):
        self.rows = {}

    def push_bytes(self, count):
        """Ids, then values."""
        return aligned(8 * count) + self.answer_bytes(count)

    def read(self, body, count):
        """(id, gradient) pairs."""
        values = body[aligned(8 * count):][:4 * WIDTH * count].view(np.float32).reshape(count, WIDTH)
        return list(zip(body[:8 * count].view(np.int64).tolist(), values.copy()))

    def answer_bytes(self, count):
        """Values only."""
        return aligned(4 * WIDTH * count)

    def answer(self, ids, out):
        """One by one."""
        for number, one in enumerate(ids.tolist()):
            out[4 * WIDTH * number:4 * WIDTH * (number + 1)].view(np.float32)[...] = self.rows.get(one, 0)

    def refuse(self, contributions):
        """Takes all."""

    def update(self, contributions):
        """By the mean."""
        for pairs in contributions:
            for one, gradient in pairs:
                self.rows.setdefault(one, np.zeros(WIDTH, np.float32))
                self.rows[one] -= gradient / np.float32(len(contributions))

    def shards(self):
        """None."""
        return ()


def job_with(described, servers, workers):
    """Servers and clients over loopback, with one dense variable beside the table."""
    network, ranks = Network(), list(range(servers))
    made = Description(place([Variable("w", (5,))], servers), {"w": recipe("sgd", "lr")}, ("lr",), (described,))
    serving = [Server(network.transport(rank), rank, list(range(servers, servers + workers)), ranks, made, SyncServer())
               for rank in ranks]
    clients = [Client(network.transport(servers + index), index, ranks, made) for index in range(workers)]
    for client in clients:
        client.transport.on_wait = lambda: [server.advance() for server in serving]
        client.rates[...] = 1.0
    return serving, clients


def test_a_table_of_ones_own_is_served_by_the_servers_and_clients_that_are(monkeypatch):
    monkeypatch.setitem(tables.TABLES, "any ids", OfAnyIds)
    serving, clients = job_with(tables.described("any ids", "users", recipe("sgd", "lr")), 2, 2)
    far = np.array([2**62 + 1, -7, 4], np.int64)
    pushed = [np.array([far[0], far[1], far[0]]), np.array([far[2]])]
    tickets = [client.push_pull([Rows(ids, np.full((len(ids), WIDTH), 2, np.float32), 0)])
               for client, ids in zip(clients, pushed)]
    for client, ticket in zip(clients, tickets):
        client.collect(ticket)
    found = clients[1].pull_rows({0: np.array([far[1], 999, far[0], far[2], far[1]])})[0]
    np.testing.assert_array_equal(found[:, 0], [-1, 0, -2, -1, -1])
    assert [sorted(server.table_of("users").rows) for server in serving] == [[4], [-7, 2**62 + 1]]


def test_an_unknown_kind_of_table_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="no kind of table is called 'row'.*rows"):
        tables.described("row", "users")


# ------------------------------------------------------------------ an optimizer: a step as long as the rate


def alone(param, grad, learning_rate):
    """On whole variables."""
    far_step(param, {"gradient": grad}, learning_rate, (update_rules.square_sum(grad.reshape(-1)),))


def far_step(param, measured, learning_rate, squares):
    """p -= lr g / |g|."""
    param -= (learning_rate / np.sqrt(squares[0])).astype(param.dtype) * measured["gradient"]


OF_ONE_LENGTH = update_rules.Rule("of one length", alone, norms=update_rules.Norms(
    lambda param, grad: {"gradient": grad}, far_step))


def test_an_optimizer_with_norms_of_ones_own_gives_the_same_bits_on_any_number_of_servers(monkeypatch):
    monkeypatch.setitem(update_rules.RULES, "of one length", OF_ONE_LENGTH)
    after = []
    for servers in (1, 3):
        job = Job(servers, 2, recipes=recipe("of one length", "lr"))
        before = job.fill()
        job.train(steps=1)
        after.append({name: array.copy() for name, array in job.params().items()})
    for name, array in after[0].items():
        assert array.tobytes() == after[1][name].tobytes(), name
        np.testing.assert_allclose(np.linalg.norm(array - before[name]), 0.5, rtol=1e-4)
