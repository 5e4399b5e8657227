"""A server's part in a job: from joining it until the last worker has left.

``prepare(server)`` gives a new server its values before it serves: ``start_from`` does so from whole arrays.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fleet_mpi import modes, notices
from fleet_mpi.connections import members
from fleet_mpi.connections.terms import Terms, Uplink
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.ranks import cluster, ending
from fleet_mpi.ranks.liveness import FIRST_STEP_S
from fleet_mpi.ranks.manual_start import refusal
from fleet_mpi.wire.loopback import Loopback, Network
from fleet_mpi.wire.transport import Transport

Prepare = Callable[[Server], None]


def serve(terms: Terms, index: int, prepare: Prepare) -> Server:
    """Be server number ``index`` until all workers have left."""
    job = cluster.join("server", index, terms.endpoints[index], workers=terms.workers, servers=list(terms.endpoints))
    if job.size == 1:
        raise refusal("server", index, terms.workers, terms.endpoints)
    members.announce()
    server = new_server(terms, index, members.transport(job), [one.rank for one in job.workers],
                        [one.rank for one in job.servers], prepare, members.name_of(job))
    server.stalls.first_step_s, server.policy, job.takes_part = FIRST_STEP_S, job.policy, True
    job.progress = lambda: max(server.applied)
    notices.log().info("Server listening on %s", terms.endpoints[index])
    with ending.amid("serving"):
        server.serve()
    return server


def embedded(terms: Terms, prepares: Sequence[Prepare]) -> Uplink:
    """The uplink to servers within this process, one for each of ``prepares``, which do their part whenever the worker
    waits."""
    network, ranks = Network(), list(range(len(prepares)))
    servers = [new_server(terms, index, network.transport(index), [len(ranks)], ranks, prepares[index])
               for index in ranks]

    def advance() -> bool:
        return any([server.advance() for server in servers])
    return Uplink(0, Loopback(network, len(ranks), on_wait=advance), ranks)


def new_server(terms: Terms, index: int, transport: Transport, workers: list[int], servers: list[int],
               prepare: Prepare, name_of: Callable[[int], str] = str) -> Server:
    """Server number ``index`` over a transport, with the ranks of all workers and servers."""
    half = modes.server_half(terms.mode, terms.options, workers=len(workers))
    server = Server(transport, index, workers, servers, terms.description, half, terms.fingerprint, name_of,
                    largest=terms.largest)
    prepare(server)
    return server


def start_from(values: Mapping[str, np.ndarray], rates: Mapping[str, float] | None = None) -> Prepare:
    """The ``prepare`` that gives a server its shards of whole arrays, and rates that it keeps itself."""
    def prepare(server: Server) -> None:
        for table in server.tables:
            for shard in table.shards():
                part = np.asarray(values[shard.variable]).reshape(-1)[shard.offset:shard.offset + shard.size]
                table.param(shard.variable, shard.block)[...] = part.reshape(shard.shape)
        for name, rate in (rates or {}).items():
            server.rates[name][...] = rate
    return prepare
