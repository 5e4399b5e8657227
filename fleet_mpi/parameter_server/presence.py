"""Servers show that they have begun, and workers wait for that first.

A server that prepares its values compiles kernels, which takes its time; one whose script never comes so far is
stalled. Workers can tell them apart by one small message.
"""

from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import waiting
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind


def show(transport, index, workers):
    """A server's: tell the workers, by their ranks, that server ``index`` has begun; returns the sends."""
    return [transport.post_send(rank, Channel.PRESENCE, messages.message(Header(Kind.PRESENT, index)))
            for rank in workers]


def wait_for(transport, index, servers, name_of=str):
    """A worker's: wait until the servers, by their ranks, have begun; Stalled names the one that has not."""
    for rank in servers:
        buffer = transport.inbox(HEADER_BYTES)
        pending = transport.post_receive(rank, Channel.PRESENCE, buffer)
        with waiting.told_by_the_first(index):
            waiting.wait_until(pending.done, lambda: f"{name_of(rank)} has not begun to serve", transport)
        Header.unpack(buffer, pending.received, name_of(rank))
