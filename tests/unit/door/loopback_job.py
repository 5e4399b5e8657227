"""A job of several workers and servers within one process: every rank is a thread, over loopback."""

import threading

from fleet_mpi.collective.group import Group
from fleet_mpi.connections import server as servers_part
from fleet_mpi.connections.terms import Uplink
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.door import telling
from fleet_mpi.door.job import Job
from fleet_mpi.door.peers import connect_within
from fleet_mpi.errors import PeerLost
from fleet_mpi.wire.loopback import Network


class Meeting:
    """Where the workers of one job come together."""

    def __init__(self, workers):
        self.barrier = threading.Barrier(workers, timeout=60)
        self.values = [None] * workers

    def all_gather(self, worker, value):
        """Everybody's value."""
        self.values[worker] = value
        self.barrier.wait()
        found = [dict(one) if isinstance(one, dict) else one for one in self.values]
        self.barrier.wait()
        return found


class EndingNetwork(Network):
    """Whose ranks do not wait for one that has failed: ``errors`` has what ended the job."""

    def __init__(self, errors):
        super().__init__()
        self.errors = errors

    def transport(self, rank):
        """That of a rank."""
        made = super().transport(rank)
        progress = made.progress

        def progress_unless_ended():
            if self.errors:
                raise PeerLost("another rank has failed")
            return progress()
        made.progress = progress_unless_ended
        return made


class LoopbackPeers:
    """``Peers`` of one worker: servers have the first ranks."""

    is_alone = False

    def __init__(self, network, sums, meeting, worker, workers, servers):
        self.network, self.sums, self.meeting = network, sums, meeting
        self.worker, self.workers, self.servers = worker, workers, servers

    def all_gather(self, value):
        """Through memory."""
        return self.meeting.all_gather(self.worker, value)

    def barrier(self):
        """Through memory."""
        self.meeting.barrier.wait()

    def group(self):
        """Over a network of its own."""
        return Group(self.worker, [self.sums.transport(self.worker)], self.workers)

    def connect(self, declared, flat):
        """Over loopback; where there are no servers, to one within."""
        if not self.servers:
            return connect_within(declared, 1, flat)
        uplink = self._uplink()
        telling.declare(uplink, declared)
        return WorkerConnection(declared.terms(_labels(self.servers), self.workers, self.worker), uplink, flat=flat)

    def leave(self):
        """Tell the servers."""
        if self.servers:
            telling.leave(self._uplink())

    def _uplink(self):
        rank = self.servers + self.worker
        return Uplink(self.worker, self.network.transport(rank), list(range(self.servers)))


def _labels(servers):
    return [f"server {number}" for number in range(servers)]


def be_server(network, number, workers, servers):
    """A server's life; returns the Server, or None where nothing was declared."""
    ranks, transport = list(range(servers, servers + workers)), network.transport(number)
    declared = telling.await_declaration(transport, ranks)
    if declared is None:
        return None
    made = servers_part.new_server(declared.terms(_labels(servers), workers), number, transport, ranks,
                                   list(range(servers)), declared.prepare())
    made.serve(until=lambda: bool(network.errors))
    return made


def run(work, workers=2, servers=1):
    """Run ``work(job)`` as every worker; returns what each returned, or raises the first error.

    The others may wait for one that has failed: then they fail too, at their next poll.
    """
    found, errors = [None] * workers, []
    network, sums, meeting = EndingNetwork(errors), EndingNetwork(errors), Meeting(workers)

    def be_worker(worker):
        with Job(LoopbackPeers(network, sums, meeting, worker, workers, servers)) as job:
            found[worker] = work(job)

    def watched(life, *words):
        try:
            life(*words)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=watched, args=(be_worker, worker), daemon=True) for worker in range(workers)]
    threads += [threading.Thread(target=watched, args=(be_server, network, number, workers, servers), daemon=True)
                for number in range(servers)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not errors:
        for thread in threads:
            thread.join(0.005)
    if errors:
        first = errors[0]
        meeting.barrier.abort()
        for thread in threads:
            thread.join(10)
        raise first
    return found
