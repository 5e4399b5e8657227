"""The machines of a job show each other that they live.

On its own machine the watcher knows a rank that is stopped. A machine that freezes as a whole, or is cut off, takes its
watcher with it, and only another machine can tell. So a thread of the first rank of every machine exchanges a small
message a second with that of the first machine. A rank that computes for long beats on: the thread is not held up by
it. Knows communicators by their methods only; the communicator must be used by nothing else, from any thread.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import meeting, waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.ranks.liveness import beat_every_s
from fleet_mpi.ranks.roster import Member

STOOD_STILL_S = 2.0  # without a look for so long, this process was stopped itself: what came meanwhile is not yet taken
_BEATS, _LAST = 0, 1
_GOODBYE_S = 2.0     # for the last beats, before MPI_Finalize


def first_ranks(members: Iterable[Member]) -> dict[int, list[Member]]:
    """{rank of the first member of each host: the members there}, the first host first."""
    hosts: dict[str, list[Member]] = {}
    for member in sorted(members, key=lambda one: one.rank):
        hosts.setdefault(member.host, []).append(member)
    return {there[0].rank: there for there in hosts.values()}


class Beats:
    """One machine's part. ``hosts`` is what ``first_ranks`` gives; this rank must be in it."""

    def __init__(self, comm: Any, hosts: dict[int, list[Member]], clock: Callable[[], float] = time.monotonic):
        self.comm, self.hosts, self.clock = comm, hosts, clock
        first = min(hosts)
        peers = [rank for rank in hosts if rank != first] if comm.rank == first else [first]
        self.heard = dict.fromkeys(peers, clock())
        self.looked = clock()
        self.coming = {rank: self._listen(rank) for rank in peers}
        self.sent: dict[int, Any] = {}
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="fleet_mpi beats", daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self.thread.start()

    def stop(self) -> None:
        """Receive the last beats of all machines, so that no message is pending in MPI_Finalize."""
        self.stopping.set()
        self.thread.join()
        self._send(_LAST)
        waiting.poll(self._nothing_is_under_way, limit_s=_GOODBYE_S)
        for _, request in self.coming.values():
            request.Cancel()
        meeting.finish({rank: request for rank, (_, request) in self.coming.items()}, _GOODBYE_S)

    def _nothing_is_under_way(self) -> bool:
        self._take()
        self.sent = {rank: request for rank, request in self.sent.items() if not request.Test()}
        return not (self.coming or self.sent)

    def turn(self) -> None:
        """Send a beat and receive the others'; raise Stalled for a machine that was silent for the deadline."""
        now = self.clock()
        if now - self.looked > STOOD_STILL_S:
            self.heard = dict.fromkeys(self.heard, now)
        self.looked = now
        self._take()
        self._send(_BEATS)
        deadline = waiting.deadline_s()
        for rank, at in self.heard.items():
            if rank in self.coming and now - at > deadline:
                there = ", ".join(map(str, self.hosts[rank]))
                raise Stalled(f"nothing was heard of host {self.hosts[rank][0].host} for {deadline:g} s "
                              f"(FLAGS_rpc_deadline): it is frozen or cut off, and with it {there}")

    def _run(self) -> None:
        while not self.stopping.wait(beat_every_s(waiting.deadline_s())):
            self.turn()

    def _listen(self, rank: int) -> tuple[np.ndarray, Any]:
        word = np.zeros(1, np.uint8)
        return word, self.comm.Irecv(word, rank, Channel.BEAT)

    def _take(self) -> None:
        for rank, (word, request) in list(self.coming.items()):
            while request.Test():
                self.heard[rank] = self.clock()
                if word[0] == _LAST:
                    del self.coming[rank]
                    break
                word, request = self.coming[rank] = self._listen(rank)

    def _send(self, kind: int) -> None:
        """Send a beat to every machine that received the previous one, so that sends do not pile up."""
        if kind == _LAST:
            self.sent = meeting.finish(self.sent, _GOODBYE_S)
        for rank in self.heard:
            if rank not in self.sent or self.sent[rank].Test():
                self.sent[rank] = self.comm.Isend(np.array([kind], np.uint8), rank, Channel.BEAT)
