"""Ranks come together: every wait is polled, has a deadline, and knows whom it waits for.

Collectives here begin with a meeting through the first rank, which learns who is missing, and whether all
ask for the same thing; then arrays move by buffer. Nothing is pickled: arrays travel as npy, other values
as JSON. Knows communicators by their methods only.
"""

import io
import json
import struct
import time

import numpy as np

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, Stalled, UsageError
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.ranks.in_flight import Receiving, Sending

_SPIN_S = 0.002          # after that long without news a waiting rank sleeps between looks
_LONGEST_SLEEP_S = 0.005
_GRACE_S = 10            # how much longer the others wait for the first rank, which names the missing one
_ROUND_BYTES = 1 << 28   # of all ranks together: counts and displacements stay far below 2^31
_CALL = struct.Struct("<q120s")

MODES = {"sum": np.add, "max": np.maximum, "min": np.minimum}


FOR_EVER_S = 1e9  # a number that every timer takes
_companions = None  # knows whether the others can still come


def watch(companions):
    """While ranks meet, call ``companions.look(what, seconds waited)``, which may raise; after it, ``passed()``."""
    global _companions
    _companions = companions


def deadline_s():
    """How long a rank waits for another one, in seconds; 0 ms stand for about 30 years."""
    milliseconds = settings.get("FLAGS_rpc_deadline")
    if milliseconds < 0:
        raise EnvironmentProblem(f"FLAGS_rpc_deadline={milliseconds}: expected a number of milliseconds, or 0 for ever")
    return milliseconds / 1000 or FOR_EVER_S


def finish(pending, seconds, what=None):
    """Poll requests, {whom: request}, until all are done or ``seconds`` have passed; returns those not done.

    ``what`` is the meeting that this is part of.
    """
    begun, pause = time.monotonic(), 0.0
    while True:
        pending = {whom: request for whom, request in pending.items() if not request.Test()}
        waited = time.monotonic() - begun
        if not pending or waited > seconds:
            return pending
        if what is not None and _companions is not None:
            _companions.look(what, waited)
        if waited > _SPIN_S:
            pause = min(_LONGEST_SLEEP_S, pause * 1.5 + 50e-6)
        time.sleep(pause)


def meet(comm, mine, what, named, cure="all of them must make this call"):
    """Collective: the bytes ``mine`` of every rank of ``comm``, of one length, in rank order.

    Stalled says who has not come after the deadline, and the ``cure``. ``named(rank)`` is how a rank is called there.
    """
    if comm.size == 1:
        return [bytes(mine)]
    mine = np.frombuffer(mine, np.uint8)
    table = np.zeros((comm.size, mine.size), np.uint8)
    if comm.rank == 0:
        table[0] = mine
        _receive_all(comm, table, what, named, cure)
    else:
        _ask_first(comm, mine, table, what, named, cure)
    if _companions is not None:
        _companions.passed()
    return [row.tobytes() for row in table]


def _receive_all(comm, table, what, named, cure):
    others, nothing = range(1, comm.size), np.zeros(1, np.uint8)
    marks = {rank: Sending(comm.Isend(nothing, rank, Channel.ARRIVED)) for rank in others}
    coming = {rank: Receiving(comm.Irecv(table[rank], rank, Channel.RECORD)) for rank in others}
    _all_or_stalled(coming, deadline_s(), what, named, cure)
    sent = {(rank, "table"): Sending(comm.Isend(table, rank, Channel.TABLE)) for rank in others}
    left = finish({**marks, **sent}, deadline_s())
    if left:
        raise Stalled(f"{what}: the answer to the other ranks was not taken within {deadline_s():g} s")


def _ask_first(comm, mine, table, what, named, cure):
    # The first rank's mark tells "it has not come" from "it waits, as I do, for another": only then is the
    # sentence about the right rank.
    sent = Sending(comm.Isend(mine, 0, Channel.RECORD))
    mark = Receiving(comm.Irecv(np.zeros(1, np.uint8), 0, Channel.ARRIVED))
    _all_or_stalled({0: mark}, deadline_s(), what, named, cure)
    seconds = deadline_s() + _GRACE_S
    if finish({"table": Receiving(comm.Irecv(table, 0, Channel.TABLE)), "own": sent}, seconds, what):
        raise Stalled(f"{what}: {named(0)} came, but did not say within {seconds:g} s whom it waits for")


def _all_or_stalled(pending, seconds, what, named, cure):
    left = finish(pending, seconds, what)
    if left:
        names = ", ".join(named(rank) for rank in sorted(left))
        raise Stalled(f"{what}: {names} did not come within {seconds:g} s (FLAGS_rpc_deadline): {cure}")


def leave(comm):
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


def barrier(comm, named):
    """Collective: returns when all ranks of ``comm`` have come."""
    _agree(comm, "barrier", 0, named)


def all_gather(comm, value, named):
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


def all_reduce(comm, array, mode, named):
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


def mode_named(mode):
    """The function that combines two arrays in this mode."""
    if mode not in MODES:
        raise UsageError(f"all_reduce: mode must be sum, max or min, got {mode!r}")
    return MODES[mode]


def pack(value):
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


def unpack(data):
    """The value in bytes made by ``pack``; never executes what they say."""
    if data[:1] == b"N":
        return np.load(io.BytesIO(data[1:]), allow_pickle=False)
    return json.loads(data[1:])


def _agree(comm, call, size, named):
    """Meet, and refuse when not all ranks ask for the same ``call``; returns every rank's size."""
    calls = [_CALL.unpack(one) for one in meet(comm, _CALL.pack(size, call.encode()[:120]), call, named)]
    texts = [text.rstrip(b"\0").decode(errors="replace") for _, text in calls]
    for rank, text in enumerate(texts):
        if text != texts[0]:
            error = UsageError(f"{named(0)} calls {texts[0]} while {named(rank)} calls {text}: all must make the same "
                               f"calls in the same order")
            error.told_elsewhere = comm.rank > 0
            raise error
    return [size for size, _ in calls]


def _transfer(request, what, comm, named):
    everybody = ", ".join(named(rank) for rank in range(comm.size) if rank != comm.rank)
    if finish({0: Sending(request)}, deadline_s()):
        raise Stalled(f"{what}: all had come, but the transfer with {everybody} did not end within {deadline_s():g} s")


def _numeric(array):
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise UsageError(f"only arrays of numbers or texts travel between ranks, got dtype {array.dtype}")
    return array
