"""Who has begun, and who will not come: what servers and workers tell each other before and without training.

A server that prepares its values compiles kernels, which takes its time; one whose script never comes so far is
stalled. Workers tell them apart by one small message (``announce``, ``await_servers``). A process that joined a job but
never takes its part must not be waited for: a worker says goodbye all the same (``leave``), and a server stays until
every worker has, and tells one that asks it for something (``refuse_workers``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import Stalled, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks import waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.ranks.liveness import report_by_first
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

    from fleet_mpi.wire.transport import Pending, Transport


def announce(transport: Transport, index: int, workers: Iterable[int]) -> list[Pending]:
    """A server's: tell the workers, by their ranks, that server ``index`` has begun; returns the sends."""
    return [transport.post_send(rank, Channel.ANNOUNCEMENT, messages.message(Header(Kind.PRESENT, index)))
            for rank in workers]


def await_servers(transport: Transport, index: int, servers: Iterable[int],
                  name_of: Callable[[int], str] = str) -> None:
    """A worker's: wait until the servers, by their ranks, have begun; Stalled names the one that has not."""
    for rank in servers:
        buffer = transport.inbox(HEADER_BYTES)
        pending = transport.post_receive(rank, Channel.ANNOUNCEMENT, buffer)
        try:
            _wait(transport, pending, f"{name_of(rank)} has not begun to serve")
        except Stalled as error:
            report_by_first(error, index)
            raise
        Header.unpack(buffer, pending.received, name_of(rank))


def _wait(transport: Transport, pending: Pending, whom: str) -> None:
    waiting.wait_until(pending.done, lambda: whom, transport.progress)


def leave(transport: Transport, index: int, servers: Iterable[int], name_of: Callable[[int], str] = str) -> None:
    """A worker's: tell the servers, by their ranks, that worker ``index`` sends nothing."""
    sent = {rank: transport.post_send(rank, Channel.REQUEST, messages.message(Header(Kind.LEAVE, index)))
            for rank in servers}
    for rank, pending in sent.items():
        _wait(transport, pending, f"{name_of(rank)} does not take a goodbye")


def refuse_workers(transport: Transport, index: int, workers: Iterable[int],
                   name_of: Callable[[int], str] = str) -> None:
    """A server's: wait until the workers, by their ranks, have said goodbye; refuse what else they ask for."""
    coming: dict[int, tuple[np.ndarray, Pending]] = {}
    for rank in workers:
        buffer = transport.inbox(messages.inbox_bytes(0, 0))
        coming[rank] = buffer, transport.post_receive(rank, Channel.REQUEST, buffer)

    def all_have_left() -> bool:
        for rank, (buffer, pending) in list(coming.items()):
            if pending.done():
                _refuse_unless_goodbye(transport, index, rank, Header.unpack(buffer, pending.received, name_of(rank)),
                                       name_of)
                del coming[rank]
        return not coming
    waiting.poll(all_have_left, transport.progress)


def _refuse_unless_goodbye(transport: Transport, index: int, rank: int, header: Header,
                           name_of: Callable[[int], str]) -> None:
    if header.kind == Kind.LEAVE:
        return
    error = UsageError(f"{name_of(rank)} wants to train, but the script of {name_of(transport.rank)} has ended without "
                       f"serving: a server must call fleet.run_server(), or run the program of get_pserver_program")
    told = transport.post_send(rank, Channel.REPLY, messages.error_message(index, error))
    _wait(transport, told, f"{name_of(rank)} does not take an answer")
    raise error
