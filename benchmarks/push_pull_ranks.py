"""The ranks of ``benchmarks.push_pull``: rank 0 serves, the others work; rank 1 prints what was measured as JSON."""

import json
import resource
import sys
import time

import numpy as np
from mpi4py import MPI

from benchmarks import mpi_ranks
from fleet_mpi.connections.server import new_server
from fleet_mpi.connections.terms import Terms, Uplink
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable, place
from fleet_mpi.update_rules import RULES
from fleet_mpi.wire.mpi import MPITransport

ROUND_S = 0.3
FROM_MEMORY = 32 << 20  # floats: four times what the caches of such machines hold


def main(what, options):
    """Run one of the measurements below on this rank."""
    comm = MPI.COMM_WORLD.Dup()
    found = {"rates": rates, "quiet": quiet, "memory": memory}[what](comm, **options)
    if comm.rank == 1:
        print(json.dumps(found), flush=True)


def rates(comm, rule, size, rounds):
    """Seconds of one exchange by each way, of each round; ways take turns."""
    ways = {"ours": Ours(comm, rule, size), "numpy": Numpy(comm, rule, size), "raw": Raw(comm, size),
            "memcpy": Memcpy(comm, size)}
    found = {name: [] for name in ways}
    counts = {name: steps_for(comm, way) for name, way in ways.items()}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(timed(comm, way, counts[name]))
    for way in ways.values():
        way.close()
    return found


def steps_for(comm, way):
    """How many exchanges fill a round; the same number on every rank."""
    timed(comm, way, 2)
    seconds = comm.bcast(timed(comm, way, 2), root=1)
    return comm.bcast(max(2, min(2000, int(ROUND_S / max(seconds, 1e-7)))), root=1)


def timed(comm, way, count):
    """Seconds per exchange of ``count`` in a row."""
    mpi_ranks.quiet_barrier(comm)
    began = time.perf_counter()
    way.run(count)
    return (time.perf_counter() - began) / count


class Ours:
    """The parameter server of this package, in synchronous mode."""

    def __init__(self, comm, rule, size):
        self.comm = comm
        variables = [Variable("w", (size,))]
        description = Description(place(variables, 1), {"w": recipe(rule, "rate")}, ("rate",))
        transport, workers = MPITransport(comm.Dup()), list(range(1, comm.size))
        terms = Terms(description, ("server 0",), len(workers))
        if comm.rank == 0:
            self.server = new_server(terms, 0, transport, workers, [0], lambda server: None)
            self.server.serve(until=lambda: len(self.server.stalls.greeted) == len(workers))
        else:
            self.client = WorkerConnection(terms, Uplink(comm.rank - 1, transport, [0])).client
            self.client.rates[0] = 1e-3
            self.client.layout.views(self.client.grads)["w"][...] = 1e-3

    def run(self, count):
        """Exchanges on a worker; a server serves until its workers have been answered as often."""
        if self.comm.rank:
            for _ in range(count):
                self.client.collect(self.client.push_pull())
        else:
            until = self.server.applied[0] + count
            self.server.serve(until=lambda: self.server.applied[0] >= until)

    def close(self):
        """Say goodbye."""
        if self.comm.rank:
            self.client.leave()
        else:
            self.server.serve()


class Numpy:
    """Blocking buffer calls, and the update as one writes it in numpy."""

    def __init__(self, comm, rule, size):
        self.comm, self.rule = comm, rule
        self.grad, self.param = np.full(size, 1e-3, np.float32), np.zeros(size, np.float32)
        if comm.rank == 0:
            self.moment1, self.moment2 = np.zeros(size, np.float32), np.zeros(size, np.float32)
            self.step = 0

    def run(self, count):
        """Receive, sum, update and send, or the other side of it."""
        for _ in range(count):
            if self.comm.rank:
                self.comm.Send(self.grad, 0)
                self.comm.Recv(self.param, 0)
            else:
                self._serve()

    def _serve(self):
        workers = range(1, self.comm.size)
        grads = []
        for worker in workers:
            grads.append(np.empty_like(self.param))
            self.comm.Recv(grads[-1], worker)
        grad = sum(grads[1:], grads[0]) / np.float32(len(grads)) if len(grads) > 1 else grads[0]
        self._update(grad)
        for worker in workers:
            self.comm.Send(self.param, worker)

    def _update(self, grad):
        if self.rule == "sgd":
            self.param -= np.float32(1e-3) * grad
            return
        self.step += 1
        self.moment1 = np.float32(0.9) * self.moment1 + np.float32(0.1) * grad
        self.moment2 = np.float32(0.999) * self.moment2 + np.float32(0.001) * grad * grad
        scale = np.float32(1e-3 * np.sqrt(1 - 0.999 ** self.step) / (1 - 0.9 ** self.step))
        self.param -= scale * self.moment1 / (np.sqrt(self.moment2) + np.float32(1e-8))

    def close(self):
        """Nothing is open."""


class Raw:
    """The same bytes there and back by blocking calls into buffers at hand; nothing is updated."""

    def __init__(self, comm, size):
        self.comm, self.up, self.down = comm, np.ones(size, np.float32), np.ones(size, np.float32)

    def run(self, count):
        """There and back."""
        for _ in range(count):
            if self.comm.rank:
                self.comm.Send(self.up, 0)
                self.comm.Recv(self.down, 0)
            else:
                for worker in range(1, self.comm.size):
                    self.comm.Recv(self.up, worker)
                for worker in range(1, self.comm.size):
                    self.comm.Send(self.down, worker)

    def close(self):
        """Nothing is open."""


class Memcpy:
    """The payload of one exchange of all workers copied once on rank 1, from memory and not from a cache."""

    def __init__(self, comm, size):
        self.comm, self.size, self.at = comm, size, 0
        if comm.rank == 1:
            room = max(size, FROM_MEMORY)
            self.source, self.target = np.ones(room, np.float32), np.ones(room, np.float32)

    def run(self, count):
        """Two copies per worker, each of other places."""
        if self.comm.rank == 1:
            for _ in range(2 * count * (self.comm.size - 1)):
                self.at = 0 if self.at + 2 * self.size > len(self.source) else self.at + self.size
                np.copyto(self.target[self.at:self.at + self.size], self.source[self.at:self.at + self.size])

    def close(self):
        """Nothing is open."""


def quiet(comm, seconds):
    """CPU seconds of an idle server, and round trips after a short and a long pause."""
    ours = Ours(comm, "sgd", 8 << 10)
    ours.run(50)
    pauses = {"soon": [0.001] * 200, "late": [1.0] * 3}
    if comm.rank == 0:
        ours.server.serve(until=lambda: ours.server.applied[0] >= 50 + sum(map(len, pauses.values())))
        burnt = idle_cpu(ours.server, seconds)
        comm.send({"burnt": burnt, "seconds": seconds}, 1)
        ours.close()
        return None
    found = {}
    for name, waits in pauses.items():
        found[name] = []
        for wait in waits:
            time.sleep(wait)
            began = time.perf_counter()
            ours.run(1)
            found[name].append(time.perf_counter() - began)
    time.sleep(seconds + 1.5)
    while not comm.iprobe(0):
        time.sleep(0.01)
    found |= comm.recv(source=0)
    ours.close()
    return found


def idle_cpu(server, seconds):
    """CPU seconds that serving nobody takes, after the first second."""
    begun, at_first = time.monotonic(), []

    def is_over():
        now = time.monotonic() - begun
        if now > 1.0 and not at_first:
            at_first.append(cpu())
        return now > 1.0 + seconds
    server.serve(until=is_over)
    return cpu() - at_first[0]


def cpu():
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory(comm, size, rule):
    """Peak memory of a server, and of a rank before it has one."""
    warm = Ours(comm, rule, 1024)
    warm.run(2)
    warm.close()
    empty = peak()
    ours = Ours(comm, rule, size)
    ours.run(3)
    if comm.rank == 0:
        comm.send((empty, peak()), 1)
    ours.close()
    if comm.rank != 1:
        return None
    empty, full = comm.recv(source=0)
    return {"rule": rule, "workers": comm.size - 1, "params": 4 * size, "empty": empty, "server": full,
            "states": sum(state.like_param for state in RULES[rule].states)}


def peak():
    """Peak bytes of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
