"""Ranks come together: every wait is polled, has a deadline, and knows whom it waits for.

Collectives here begin with a meeting through the first rank, which learns who is missing, and whether all
ask for the same thing; then arrays move by buffer. Nothing is pickled: arrays travel as npy, other values
as JSON. Knows communicators by their methods only.
"""

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from fleet_mpi.errors import Stalled, UsageError
from fleet_mpi.ranks import liveness
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.ranks.pending_requests import Receiving, Sending
from fleet_mpi.ranks.waiting import FOR_EVER_S, deadline_s, poll

_GRACE_S = 10            # how much longer the others wait for the first rank, which names the missing one
_ROUND_BYTES = 1 << 28   # of all ranks together: counts and displacements stay far below 2^31
_CALL = struct.Struct("<q120s")

MODES = {"sum": np.add, "max": np.maximum, "min": np.minimum}

_members: liveness.MeetingLiveness | None = None  # knows whether the others can still come


def watch(members: liveness.MeetingLiveness) -> None:
    """Call ``members.look(what)`` during long meetings; it raises if a rank can no longer come."""
    global _members
    _members = members


def finish(pending: dict[Any, Any], seconds: float, what: str | None = None) -> dict[Any, Any]:
    """Poll requests, {whom: request}, until all are done or ``seconds`` have passed; returns those not done.

    ``what`` is the meeting that this is part of.
    """
    left = dict(pending)

    def is_over() -> bool:
        for whom in [whom for whom, request in left.items() if request.Test()]:
            del left[whom]
        return not left
    poll(is_over, look=None if what is None or _members is None else _looking(_members, what), limit_s=seconds)
    return left


def _looking(members: liveness.MeetingLiveness, what: str) -> Callable[[float], None]:
    """What a long wait in a meeting does."""
    after_s = liveness.notice_after_s(deadline_s())
    return lambda idle_s: members.look(what) if idle_s >= after_s else None


def meet(comm: Any, mine: bytes, what: str, named: Callable[[int], str],
         cure: str = "all of them must make this call") -> list[bytes]:
    """Collective: the bytes ``mine`` of every rank of ``comm``, of one length, in rank order.

    Stalled says who has not come after the deadline, and the ``cure``. ``named(rank)`` is how a rank is called there.
    """
    if comm.size == 1:
        return [bytes(mine)]
    own = np.frombuffer(mine, np.uint8)
    table = np.zeros((comm.size, own.size), np.uint8)
    if comm.rank == 0:
        table[0] = own
        _receive_all(comm, table, what, named, cure)
    else:
        _ask_first(comm, own, table, what, named, cure)
    if _members is not None:
        _members.passed()
    return [row.tobytes() for row in table]


def _receive_all(comm: Any, table: np.ndarray, what: str, named: Callable[[int], str], cure: str) -> None:
    others, nothing = range(1, comm.size), np.zeros(1, np.uint8)
    marks = {rank: Sending(comm.Isend(nothing, rank, Channel.ARRIVED)) for rank in others}
    coming = {rank: Receiving(comm.Irecv(table[rank], rank, Channel.RECORD)) for rank in others}
    seconds = deadline_s()
    _all_or_stalled(coming, seconds, what, named, cure)
    sent = {(rank, "table"): Sending(comm.Isend(table, rank, Channel.TABLE)) for rank in others}
    if finish({**marks, **sent}, seconds):
        raise Stalled(f"{what}: the answer to the other ranks was not taken within {seconds:g} s")


def _ask_first(comm: Any, mine: np.ndarray, table: np.ndarray, what: str, named: Callable[[int], str],
               cure: str) -> None:
    # The first rank's mark tells "it has not come" from "it waits, as I do, for another": only then is the
    # sentence about the right rank.
    sent = Sending(comm.Isend(mine, 0, Channel.RECORD))
    mark = Receiving(comm.Irecv(np.zeros(1, np.uint8), 0, Channel.ARRIVED))
    seconds = deadline_s()
    _all_or_stalled({0: mark}, seconds, what, named, cure)
    seconds += _GRACE_S
    if finish({"table": Receiving(comm.Irecv(table, 0, Channel.TABLE)), "own": sent}, seconds, what):
        raise Stalled(f"{what}: {named(0)} came, but did not say within {seconds:g} s whom it waits for")


def _all_or_stalled(pending: dict[int, Any], seconds: float, what: str, named: Callable[[int], str],
                    cure: str) -> None:
    left = finish(pending, seconds, what)
    if left:
        names = ", ".join(named(rank) for rank in sorted(left))
        raise Stalled(f"{what}: {names} did not come within {seconds:g} s (FLAGS_rpc_deadline): {cure}")


def leave(comm: Any) -> None:
    """Collective: wait for all ranks before MPI_Finalize, which would take a whole core while it waits for them.

    Without a deadline: a rank may do something else at length when the others are done. Whether it still lives is
    watched (``lifeline``, ``beats``).
    """
    word, others = np.zeros(1, np.uint8), range(1, comm.size)
    if comm.rank:
        finish({0: comm.Isend(word, 0, Channel.LEAVING)}, FOR_EVER_S)
        finish({0: comm.Irecv(word, 0, Channel.LEAVING)}, FOR_EVER_S)
        return
    finish({rank: comm.Irecv(np.zeros(1, np.uint8), rank, Channel.LEAVING) for rank in others}, FOR_EVER_S)
    finish({rank: comm.Isend(word, rank, Channel.LEAVING) for rank in others}, FOR_EVER_S)


def barrier(comm: Any, named: Callable[[int], str]) -> None:
    """Collective: returns when all ranks of ``comm`` have come."""
    _agree(comm, "barrier", 0, named)


def all_gather(comm: Any, value: Any, named: Callable[[int], str]) -> list[Any]:
    """Collective: every rank's value (array, number, text, list, dict or None), in rank order."""
    mine = np.frombuffer(pack(value), np.uint8)
    sizes = _agree(comm, "all_gather", mine.size, named)
    received = [np.empty(size, np.uint8) for size in sizes]
    piece = max(1, _ROUND_BYTES // comm.size)
    for start in range(0, max(sizes), piece):
        counts = [max(0, min(size - start, piece)) for size in sizes]
        together = np.empty(sum(counts), np.uint8)
        places = np.concatenate(([0], np.cumsum(counts)[:-1])).tolist()
        _transfer(comm.Iallgatherv(mine[start:start + piece], [together, (counts, places)]), "all_gather", comm, named)
        for array, count, place in zip(received, counts, places):
            array[start:start + count] = together[place:place + count]
    return [unpack(array.tobytes()) for array in received]


def all_reduce(comm: Any, array: Any, mode: str, named: Callable[[int], str]) -> np.ndarray:
    """Collective: all ranks' arrays combined element by element, in rank order, so that the bits are always the
    same."""
    combine = mode_named(mode)
    array = _numeric(array)
    flat = np.ascontiguousarray(array).reshape(-1)
    _agree(comm, f"all_reduce {mode} of {array.dtype} {list(array.shape)}", flat.nbytes, named)
    result = np.empty_like(flat)
    piece = max(1, _ROUND_BYTES // comm.size // max(1, flat.itemsize))
    for start in range(0, flat.size, piece):
        mine = flat[start:start + piece]
        together = np.empty((comm.size, mine.nbytes), np.uint8)
        _transfer(comm.Iallgather(mine.view(np.uint8), together), "all_reduce", comm, named)
        rows = together.view(flat.dtype)
        total = result[start:start + piece]
        total[...] = rows[0]
        for row in rows[1:]:
            combine(total, row, out=total)
    return result.reshape(array.shape)


def mode_named(mode: str) -> Callable[..., Any]:
    """The function that combines two arrays in this mode."""
    if mode not in MODES:
        raise UsageError(f"all_reduce: mode must be sum, max or min, got {mode!r}")
    return MODES[mode]


def pack(value: Any) -> bytes:
    """A value as bytes: an array as npy, anything else as JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        stream = io.BytesIO(b"N")
        stream.seek(1)
        np.save(stream, _numeric(value), allow_pickle=False)
        return stream.getvalue()
    try:
        return b"J" + json.dumps(value).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"only arrays, numbers, texts, lists, dicts and None travel between ranks, got "
                         f"{type(value).__name__}: {error}") from None


def unpack(data: bytes) -> Any:
    """The value in bytes made by ``pack``; never executes what they say."""
    if data[:1] == b"N":
        return np.load(io.BytesIO(data[1:]), allow_pickle=False)
    return json.loads(data[1:])


def _agree(comm: Any, call: str, size: int, named: Callable[[int], str]) -> list[int]:
    """Meet, and refuse when not all ranks ask for the same ``call``; returns every rank's size."""
    calls = [_CALL.unpack(one) for one in meet(comm, _CALL.pack(size, call.encode()[:120]), call, named)]
    texts = [text.rstrip(b"\0").decode(errors="replace") for _, text in calls]
    for rank, text in enumerate(texts):
        if text != texts[0]:
            error = UsageError(f"{named(0)} calls {texts[0]} while {named(rank)} calls {text}: all must make the same "
                               f"calls in the same order")
            error.reported_by_peer = comm.rank > 0
            raise error
    return [size for size, _ in calls]


def _transfer(request: Any, what: str, comm: Any, named: Callable[[int], str]) -> None:
    everybody = ", ".join(named(rank) for rank in range(comm.size) if rank != comm.rank)
    seconds = deadline_s()
    if finish({0: Sending(request)}, seconds):
        raise Stalled(f"{what}: all had come, but the transfer with {everybody} did not end within {seconds:g} s")


def _numeric(array: Any) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise UsageError(f"only arrays of numbers or texts travel between ranks, got dtype {array.dtype}")
    return array
