"""Servers and workers of a job in one thread, over loopback: whoever waits lets the servers go on."""

import numpy as np

from fleet_mpi.modes.sync import SyncServer
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire.loopback import Network

VARIABLES = (Variable("a", (100, 300)), Variable("b", (7,)), Variable("c", (64, 500)), Variable("d", (64,), "float64"))


class ApplyAlone:
    """A server half that applies every piece as it arrives."""

    applies_alone = True

    def __init__(self, **options):
        self.server = None

    def start(self, server):
        """Get ready to serve."""
        self.server = server

    def on_piece(self, push, number):
        """Update with what is here."""
        if number == 0:
            self.server.set_rates(push)
        self.server.dense.update_piece([push.parts[0]], number)

    def on_push(self, push):
        """Count and answer; a push without pieces is still to be applied."""
        if not push.header.body:
            for number in range(len(self.server.image.pieces)):
                self.on_piece(push, number)
        self.server.applied[push.worker] = push.header.step
        if push.wants_values:
            self.server.answer_values(push.inbox, self.server.dense.params)
        else:
            self.server.answer(push.inbox)

    def on_pull(self, worker, header):
        """Parameters as they are."""
        self.server.answer_values(self.server.inboxes[worker], self.server.dense.params)

    def on_leave(self, worker):
        """Nothing waits for it."""

    def late(self, longest):
        """Nobody."""
        return []


class Job:
    """Ranks 0 to servers - 1 serve, the rest work. ``recipes`` may be one for all or {variable: Recipe}."""

    def __init__(self, servers=2, workers=1, variables=VARIABLES, recipes=None, mode=SyncServer, method="RoundRobin",
                 slice_up=True, min_block_size=8192, fault=None, rates=("lr",), fingerprint=None, largest=None,
                 names=None):
        self.network = Network(fault)
        self.placement = place(variables, servers, method, slice_up, min_block_size)
        recipes = recipes if isinstance(recipes, dict) else {
            variable.name: recipes or recipe("adam", "lr") for variable in variables}
        self.description = Description(self.placement, recipes, rates, rate_dtypes={})
        self.name_of = names or (lambda rank: f"server {rank}" if rank < servers else f"worker {rank - servers}")
        ranks = list(range(servers))
        self.servers = [Server(self.network.transport(rank), rank, list(range(servers, servers + workers)), ranks,
                               self.description, mode(), fingerprint, self.name_of, largest=largest) for rank in ranks]
        self.clients = [Client(self.network.transport(servers + index), index, ranks, self.description, self.name_of,
                               largest) for index in range(workers)]
        for client in self.clients:
            client.transport.on_wait = self.pump
            client.rates[...] = 0.5

    def pump(self, times=1):
        """Let every server do what is ready."""
        for _ in range(times):
            for server in self.servers:
                server.advance()

    def fill(self, seed=0):
        """Values for the parameters, the same for any cut; returns them by name."""
        rng, values = np.random.default_rng(seed), {}
        for variable in self.placement.variables:
            values[variable.name] = rng.normal(size=variable.shape).astype(variable.dtype)
        for server in self.servers:
            for shard in server.dense.shards():
                part = values[shard.variable].reshape(-1)[shard.offset:shard.offset + shard.size]
                server.dense.param(shard.variable, shard.block)[...] = part.reshape(shard.shape)
        return values

    def train(self, steps=2, seed=1):
        """Synchronous steps with drawn gradients."""
        rng = np.random.default_rng(seed)
        for _ in range(steps):
            tickets = []
            for client in self.clients:
                for view in client.layout.views(client.grads).values():
                    view[...] = rng.normal(size=view.shape)
                tickets.append(client.push_pull())
            for client, ticket in zip(self.clients, tickets):
                client.collect(ticket)

    def params(self, worker=0):
        """A worker's parameters by name."""
        return self.clients[worker].layout.views(self.clients[worker].params)
