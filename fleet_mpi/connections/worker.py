"""A worker's connection to its servers, over flat arrays.

``client.params`` and ``client.grads`` are what a worker computes in (``views`` are the variables in them); what a step
ends with is ``exchange``. A row gradient is handed over by ``take_rows`` before. Where the process is the whole job,
servers are embedded: ``alone`` makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import modes
from fleet_mpi.connections import members
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import attendance, messages
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.ranks import cluster
from fleet_mpi.ranks.liveness import FIRST_STEP_S
from fleet_mpi.ranks.manual_start import refusal
from fleet_mpi.update_rules import merge
from fleet_mpi.wire.protocol import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from fleet_mpi.arrays import Rows
    from fleet_mpi.connections.terms import Terms, Uplink
    from fleet_mpi.parameter_server.description import LoadedFrom
    from fleet_mpi.ranks.cluster import Cluster

    Flat: TypeAlias = tuple[np.ndarray, np.ndarray]   # of parameters and of gradients, as the client's layout says

_of_process: WorkerConnection | None = None  # the connection with which this process is a worker of its job, if any


class WorkerConnection:
    """One worker's part in a job with servers.

    Without an ``uplink`` the process joins the job as its only worker here; with one it is a worker among others of the
    same process, or of a job that was arranged elsewhere. ``flat``: the arrays that it computes in; new ones where none
    are given.
    """

    def __init__(self, terms: Terms, uplink: Uplink | None = None, alone: Callable[[], Uplink] | None = None,
                 flat: Flat | None = None) -> None:
        self.terms = terms
        self.cluster: Cluster | None = None
        if uplink is None:
            self.cluster = _join(terms)
            uplink = _alone(alone) if self.cluster.size == 1 else members.uplink(self.cluster)
        self.client = Client(uplink.transport, uplink.worker, uplink.servers, terms.description, uplink.name_of,
                             terms.largest, flat)
        if self.cluster is not None:
            self._take_part(self.cluster, uplink)
        self.half = modes.worker_half(terms.mode, self.client, terms.options, workers=terms.workers)
        self.table_numbers = {table.name: number for number, table in enumerate(terms.description.row_tables)}
        self.rows: list[Rows | None] = [None] * len(self.table_numbers)
        self.is_over, self.steps = False, 0
        told = self.client.hello(terms.fingerprint)[0]
        self.loaded_from: LoadedFrom | None = told["loaded from"]
        self.job: str = told["job"]

    def _take_part(self, joined: Cluster, uplink: Uplink) -> None:
        if joined.size > 1 and not joined.takes_part:
            attendance.await_servers(uplink.transport, uplink.worker, uplink.servers, uplink.name_of)
        joined.takes_part = True
        self.client.first_step_s, self.client.is_first_step = FIRST_STEP_S, True

    def finish_at_exit(self, finish: Callable[[], None] | None = None) -> None:
        """Leave the servers when the process ends, by ``finish`` if it is given; for one that joined the job itself."""
        global _of_process
        if self.cluster is not None:
            cluster.at_exit(finish or self.finish)
            _of_process = self

    def views(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """{variable: its view} of a flat array, as ``client.params`` and ``client.grads`` are."""
        return self.client.layout.views(flat)

    def pull_rows(self, table: str, ids: np.ndarray) -> np.ndarray:
        """The rows of a table by their ids, which may repeat, in the order of the ids."""
        number = self.table_numbers[table]
        return self.client.pull_rows({number: ids})[number]

    def take_rows(self, table: str, rows: Rows) -> None:
        """Keep a row gradient for the next exchange, merged: its memory may be used for something else before."""
        self.rows[self.table_numbers[table]] = merge(rows)

    def require_open(self) -> None:
        """Refuse to train after ``finish``."""
        if self.is_over:
            raise UsageError("this worker has said goodbye to the servers (fleet.stop_worker or exe.close): train "
                             "before that")

    def exchange(self) -> None:
        """What a step ends with: push and pull as the mode says."""
        self.require_open()
        self.half.after_backward(self.rows)
        self.rows = [None] * len(self.rows)
        self.steps += 1
        if self.cluster is not None:
            self.cluster.progress = self.steps

    def pull(self) -> None:
        """Take the servers' parameters as they are."""
        self.client.collect(self.client.pull())
        self.half.restart()

    def workers_left(self) -> list[int]:
        """The workers that have not said goodbye, as the first server knows them now; this one is among them."""
        greeting, link = messages.encode(self.terms.fingerprint), self.client.links[0]
        told = messages.decode(self.client.control.ask(link, Kind.HELLO, greeting)[1], link.name)
        return [int(worker) for worker in told["workers"]]

    def flush(self) -> None:
        """Send what is left, and take the parameters it leads to."""
        self.half.finish()

    def finish(self) -> None:
        """Send what is left, say goodbye. Idempotent."""
        if not self.is_over:
            self.is_over = True
            self.flush()
            self.client.leave()


def of_process() -> WorkerConnection | None:
    """The connection with which this process is a worker among other ranks, unless it is over."""
    known = _of_process
    is_among_ranks = known is not None and not known.is_over and known.cluster is not None and known.cluster.size > 1
    return known if is_among_ranks else None


def _join(terms: Terms) -> Cluster:
    joined = cluster.join("worker", terms.worker, workers=terms.workers, servers=list(terms.endpoints))
    if joined.size == 1 and terms.workers > 1:
        raise refusal("worker", joined.index, terms.workers, terms.endpoints)
    return joined


def _alone(make_uplink: Callable[[], Uplink] | None) -> Uplink:
    if make_uplink is None:
        raise UsageError("this process is the whole job, and nothing was given that makes servers within it: start "
                         "servers beside it (mpirun -np 2 and more), or give alone=")
    cluster.tell_if_alone()
    return make_uplink()
