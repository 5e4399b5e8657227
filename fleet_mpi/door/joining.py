"""``join``: the handle of the front door. Who works and who serves, and the Job of each."""

from __future__ import annotations

import sys
from typing import Any

from fleet_mpi import notices
from fleet_mpi.connections import members, server
from fleet_mpi.door import telling
from fleet_mpi.door.job import Job, ServerJob
from fleet_mpi.door.peers import ClusterPeers
from fleet_mpi.errors import UsageError
from fleet_mpi.modes.options import whole
from fleet_mpi.ranks import cluster, roles
from fleet_mpi.ranks.cluster import Cluster
from fleet_mpi.ranks.roles import Part, Role

_current: Job | None = None


def join(servers: int | None = None, *, serve: bool = True, worker: int | None = None) -> Job:
    """Join the job of all ranks that were started together, or be one alone.

    Collective: every rank calls it once, before anything else of this package that needs MPI. Blocks until all have.
    Servers do not return from it: they keep what the workers declare, until the last one has left, then end the process
    by ``SystemExit(0)``. In a process that was started alone, servers are within it.

    Args:
        servers: so many first ranks serve, all others work; 0: none does, all ranks are equal workers. None: as the
            launcher says (fleetrun --server_num, PADDLE_* variables), else FLEET_MPI_SERVERS or FLEET_MPI_SERVER_RATIO,
            else every even rank serves.
        serve: False: servers return too; they call ``job.serve()`` themselves.
        worker: the number of this worker; None: in the order of ranks.
    """
    global _current
    if _current is not None and not (_current.has_left and cluster.world().size == 1):
        raise UsageError("join: this process has joined a job already, and has one role for its whole life: use that "
                         "job")
    part = _part(servers)
    role = "server" if part.role == Role.SERVER else "worker"
    number = part.number if worker is None or role == "server" else whole("join: worker", worker, 0)
    own = part.server_labels if role == "server" else part.worker_labels
    joined = cluster.join(role, number, own[number] if number < len(own) else "", part.workers,
                          list(part.server_labels) or part.servers)
    peers = ClusterPeers(joined, 1 if servers is None else servers)
    _current = job = ServerJob(peers, joined.index, lambda now: _serve(joined, now)) if role == "server" else Job(peers)
    cluster.at_exit(job.leave)
    if role == "server" and serve:
        job.serve()
        sys.exit(0)
    return job


def current() -> Job:
    """The job that this process has joined."""
    if _current is None:
        raise UsageError("this process has joined no job: call fleet_mpi.join() first")
    return _current


def _part(servers: Any) -> Part:
    """This process's part, by the argument of ``join``."""
    size = cluster.world().size
    told = roles.by_variables()
    if servers is None:
        return told or roles.by_rank()
    servers = whole("join: servers", servers, 0)
    if size == 1:
        cluster.tell_if_alone()
        return Part(Role.WORKER, 0, 1, 0)
    if servers >= size:
        raise UsageError(f"join: servers={servers}: expected 0 to {size - 1} of {size} ranks to serve, so that at "
                         f"least one works")
    if told is not None and (told.servers or servers):
        if told.servers != servers:
            raise UsageError(f"join: servers={servers}, but the launcher says {told.servers} (PADDLE_* variables): "
                             f"give the same number, or none")
        return told
    if not servers:
        return roles.of_ranks([(Role.WORKER, rank) for rank in range(size)])
    return roles.of_ranks(roles.roles_for(size, servers))


def _serve(joined: Cluster, now: bool) -> None:
    """A server's life: wait for a declaration, keep it. With ``now`` False only to see that there is none."""
    name = members.name_of(joined)
    declared = telling.await_declaration(members.transport(joined), [one.rank for one in joined.workers], name)
    joined.takes_part = True
    if declared is None:
        return
    if not now:
        raise UsageError(f"the workers want parameters to be kept, but the script of {name(joined.rank)} has ended "
                         f"without job.serve()")
    terms = declared.terms([one.endpoint for one in joined.servers], len(joined.workers))
    server.serve(terms, joined.index, declared.prepare())
    notices.log().info("server %d: all workers have left", joined.index)
