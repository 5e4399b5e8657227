"""A job with servers among the ranks of a test: the first half of them serve, the others work."""

from fleet_mpi.connections import server
from fleet_mpi.connections.terms import Terms, Uplink
from fleet_mpi.connections.worker import WorkerConnection


def servers_among(ranks):
    """How many of so many ranks serve."""
    return max(1, ranks // 2)


def take_part(transport, described, work, mode="sync", options=None, prepare=lambda server: None, largest=None):
    """Collective: serve, or do ``work(connection)``; returns (the Server, None) or (None, what ``work`` returned)."""
    ranks = list(range(transport.comm.size))
    serving, working = ranks[:servers_among(len(ranks))], ranks[servers_among(len(ranks)):]
    terms = Terms(described, tuple(f"server {rank}" for rank in serving), len(working), mode=mode,
                  options=options or {}, largest=largest)
    if transport.rank in serving:
        made = server.new_server(terms, transport.rank, transport, working, serving, prepare)
        made.serve()
        return made, None
    return None, work(WorkerConnection(terms, Uplink(transport.rank - len(serving), transport, serving)))
