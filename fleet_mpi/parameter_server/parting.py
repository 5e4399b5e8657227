"""The end of a process that joined a job but never took its part: the others must not wait for it.

A worker that never connected says goodbye all the same. A server whose script ends without serving stays until
every worker has said goodbye, and tells one that asks it for something.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import waiting
from fleet_mpi.wire.protocol import Header, Kind


def say_goodbye(transport, index, servers, name_of=str):
    """A worker's: tell the servers, by their ranks, that worker ``index`` sends nothing."""
    sent = {rank: transport.post_send(rank, Channel.REQUEST, messages.message(Header(Kind.LEAVE, index)))
            for rank in servers}
    for rank, pending in sent.items():
        waiting.wait_until(pending.done, lambda: f"{name_of(rank)} does not take a goodbye", transport)


def turn_away(transport, index, workers, name_of=str):
    """A server's: wait until the workers, by their ranks, have said goodbye; refuse what else they ask for."""
    coming = {}
    for rank in workers:
        buffer = transport.inbox(messages.inbox_bytes(0, 0))
        coming[rank] = buffer, transport.post_receive(rank, Channel.REQUEST, buffer)
    backoff = waiting.Backoff()
    while coming:
        for rank, (buffer, pending) in list(coming.items()):
            if pending.done():
                _refuse_unless_goodbye(transport, index, rank, Header.unpack(buffer, pending.received, name_of(rank)),
                                       name_of)
                del coming[rank]
        transport.progress()
        backoff.rest()


def _refuse_unless_goodbye(transport, index, rank, header, name_of):
    if header.kind == Kind.LEAVE:
        return
    error = UsageError(f"{name_of(rank)} wants to train, but the script of {name_of(transport.rank)} has ended without "
                       f"serving: a server must call fleet.run_server(), or run the program of get_pserver_program")
    told = transport.post_send(rank, Channel.REPLY, messages.error_message(index, error))
    waiting.wait_until(told.done, lambda: f"{name_of(rank)} does not take an answer", transport)
    raise error
