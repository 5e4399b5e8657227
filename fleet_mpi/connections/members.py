"""The ranks of a joined job: their names in sentences, the transport between them, and the exit of a bystander."""

from collections.abc import Callable

from fleet_mpi.connections.terms import Uplink
from fleet_mpi.parameter_server import attendance
from fleet_mpi.ranks import cluster
from fleet_mpi.ranks.cluster import Cluster
from fleet_mpi.wire.transport import Transport


def name_of(job: Cluster) -> Callable[[int], str]:
    """The function that says who a rank is."""
    members = {one.rank: one for one in (*job.workers, *job.servers)}

    def name(rank: int) -> str:
        one = members[rank]
        return f"{one.role} {one.index} (rank {rank}, host {one.host})"
    return name


def transport(job: Cluster) -> Transport:
    """The transport between workers and servers."""
    from fleet_mpi.wire.mpi import MPITransport
    return MPITransport(job.comm, name_of(job))


def uplink(job: Cluster) -> Uplink:
    """This worker's way to the servers of a job of several ranks."""
    return Uplink(job.index, transport(job), [one.rank for one in job.servers], name_of(job))


def announce() -> None:
    """A server's: let the workers know that it prepares to serve. Idempotent."""
    job = cluster.current()
    assert job is not None   # a server has joined before it prepares
    if job.size > 1 and not job.announcements:
        job.announcements = attendance.announce(transport(job), job.index, [one.rank for one in job.workers])


def leave_at_exit() -> None:
    """Let the others know at exit of a process that has joined a job with servers and took no part. Idempotent."""
    job = cluster.current()
    if job is not None and job.size > 1 and job.workers and job.servers and not job.leaves_at_exit:
        job.leaves_at_exit = True
        cluster.at_exit(lambda: _leave(job))


def _leave(job: Cluster) -> None:
    """Say goodbye, unless it took part after all."""
    if job.takes_part:
        return
    name = name_of(job)
    if job.role == "worker":
        attendance.leave(transport(job), job.index, [one.rank for one in job.servers], name)
    else:
        announce()
        attendance.refuse_workers(transport(job), job.index, [one.rank for one in job.workers], name)
