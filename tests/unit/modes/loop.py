"""A whole job in one process over loopback, in an order that the test chooses.

Every worker is a thread, but only one thread runs at a time: it goes on until it waits (or says ``loop.pause``), then
the script says who is next: a server, which does what is ready, or a worker. The same script gives the same run.
"""

import hashlib
import itertools
import threading

import numpy as np

from fleet_mpi.connections.server import new_server
from fleet_mpi.connections.terms import Terms, Uplink
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable, place
from fleet_mpi.ranks import waiting
from fleet_mpi.wire.loopback import Network

VARIABLES = (Variable("w", (6, 3)), Variable("b", (3,)))


class Loop:
    """Servers are ranks 0 to S - 1, workers the ranks that follow."""

    def __init__(self, mode="sync", options=None, servers=1, workers=2, variables=VARIABLES, rule="sgd", rate=0.1,
                 steps=(), method="RoundRobin", slice_up=True, block=8192, largest=None, fault=None, row_tables=(),
                 before_update=None, **hypers):
        self.network, self.variables = Network(), variables
        placement = place(variables, servers, method, slice_up, block)
        described = Description(placement, {one.name: recipe(rule, "rate", steps, **hypers) for one in variables},
                                ("rate",), tuple(row_tables))
        ranks = list(range(servers)), list(range(servers, servers + workers))
        terms = Terms(described, tuple(map("server {}".format, ranks[0])), workers, mode=mode, options=options or {},
                      largest=largest)

        def prepare(server):
            server.before_update = before_update
        self.servers = [new_server(terms, i, self.network.transport(i), ranks[1], ranks[0], prepare,
                                   "rank {}".format) for i in ranks[0]]
        connections = [self._connected(terms, i, ranks) for i in range(workers)]
        self.clients, self.halves = [one.client for one in connections], [one.half for one in connections]
        for client in self.clients:
            client.rates[...] = rate
        # What a script orders, and a test holds back and counts, is what comes after the greetings.
        self.pump(1)
        self.network.fault = fault
        self.network.sent.clear()
        self.players = {}

    def _connected(self, terms, worker, ranks):
        """A worker that has greeted the servers; they answer while it waits."""
        transport = self.network.transport(ranks[1][worker])
        transport.on_wait = lambda: any([server.advance() for server in self.servers])
        connection = WorkerConnection(terms, Uplink(worker, transport, ranks[0], "rank {}".format))
        transport.on_wait = None
        return connection

    # ------------------------------------------------------------------ running

    def run(self, body, script=()):
        """Let every worker do ``body(its number)``; the script's numbers choose among those that can go on."""
        self.players = {worker: _Player(worker, body) for worker in range(len(self.clients))}
        for worker, client in enumerate(self.clients):
            client.transport.on_wait = self.players[worker].pause
        longest, waiting.LONGEST_SLEEP_S = waiting.LONGEST_SLEEP_S, 0.0
        try:
            self._play(itertools.chain(script, itertools.count()))
        finally:
            waiting.LONGEST_SLEEP_S = longest
            for player in self.players.values():
                player.stop()
            for client in self.clients:
                client.transport.on_wait = None

    def _play(self, script):
        while not all(player.is_over for player in self.players.values()):
            turns = [*self.servers, *(player for player in self.players.values() if not player.is_over)]
            self.turn(turns[next(script) % len(turns)])
        for _ in range(3):
            for server in self.servers:
                server.advance()

    def turn(self, one):
        """Let one server or player go on."""
        if isinstance(one, _Player):
            one.go_on()
        elif not one.advance():
            one.stalls.look()

    def pause(self, worker):
        """Called by a worker: let others go first, if the script wants so."""
        self.players[worker].pause()

    def pump(self, turns=20):
        """Without ``run``: let the servers do what is ready."""
        for _ in range(turns):
            for server in self.servers:
                server.advance()

    # ------------------------------------------------------------------ looking

    def params(self, worker):
        """{name: array} of one worker's parameters."""
        client = self.clients[worker]
        return client.layout.views(client.params)

    def grads(self, worker):
        """{name: array} of one worker's gradients."""
        client = self.clients[worker]
        return client.layout.views(client.grads)

    def values(self):
        """{name: array}: the servers' parameters put together."""
        whole = {one.name: np.full(one.shape, np.nan, one.dtype) for one in self.variables}
        for server in self.servers:
            for shard in server.dense.shards():
                flat = whole[shard.variable].reshape(-1)
                flat[shard.offset:shard.offset + shard.size] = server.dense.param(shard.variable, shard.block).ravel()
        return whole

    def store(self, values):
        """Let the servers have these parameters."""
        for server in self.servers:
            for shard in server.dense.shards():
                flat = np.asarray(values[shard.variable]).reshape(-1)
                server.dense.param(shard.variable, shard.block)[...] = flat[
                    shard.offset:shard.offset + shard.size].reshape(shard.shape)

    def digest(self):
        """SHA-256 of the servers' parameters."""
        return hashlib.sha256(b"".join(array.tobytes() for _, array in sorted(self.values().items()))).hexdigest()


class _Stopped(BaseException):
    """Ends a thread whose test is over."""


class _Player:
    """A worker's thread."""

    def __init__(self, worker, body):
        self.worker, self.body, self.is_over, self.error, self.is_stopped = worker, body, False, None, False
        self.mine, self.others = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        self.mine.acquire()
        try:
            if not self.is_stopped:
                self.body(self.worker)
        except _Stopped:
            pass
        except BaseException as error:  # told in the test's own thread
            self.error = error
        self.is_over = True
        self.others.release()

    def go_on(self):
        """Until it waits or ends; raises what it raised."""
        self.mine.release()
        self.others.acquire()
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def pause(self):
        """In the thread: wait for the next turn."""
        self.others.release()
        self.mine.acquire()
        if self.is_stopped:
            raise _Stopped

    def stop(self):
        """End the thread."""
        self.is_stopped = True
        while not self.is_over:
            self.mine.release()
            self.others.acquire()
        self.thread.join()


class LeastSquares:
    """y = x w + b without noise; each worker draws batches of its own."""

    def __init__(self, seed=3):
        rng = np.random.default_rng(seed)
        self.truth = {"w": rng.normal(size=(6, 3)).astype("f4"), "b": rng.normal(size=3).astype("f4")}
        self.seed = seed

    def gradient(self, loop, worker, step):
        """Compute one batch's gradients at the worker's parameters."""
        x = np.random.default_rng((self.seed, worker, step)).normal(size=(16, 6)).astype("f4")
        params, grads = loop.params(worker), loop.grads(worker)
        error = x @ (params["w"] - self.truth["w"]) + (params["b"] - self.truth["b"])
        grads["w"][...] = x.T @ error / len(x)
        grads["b"][...] = error.mean(axis=0)

    def distance(self, values):
        """How far parameters are from the truth, at most."""
        return max(float(np.abs(values[name] - truth).max()) for name, truth in self.truth.items())

    def trains(self, loop, steps, own_rate=None):
        """A worker's life, for ``loop.run``: pull, ``steps`` steps (a number, or one per worker), finish, leave.

        With ``own_rate`` the worker updates its own copy, as in geo.
        """
        def body(worker):
            client, half = loop.clients[worker], loop.halves[worker]
            client.collect(client.pull())
            half.restart()
            for step in range(steps if isinstance(steps, int) else steps[worker]):
                loop.pause(worker)
                self.gradient(loop, worker, step)
                if own_rate is not None:
                    for name, param in loop.params(worker).items():
                        param -= np.float32(own_rate) * loop.grads(worker)[name]
                half.after_backward()
            half.finish()
            client.leave()
        return body
