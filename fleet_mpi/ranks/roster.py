"""The roster of a job: what each rank says about itself, and who that makes whom.

A rank's record has 512 bytes whatever its content, and begins with the package's version, so that ranks
with another version are told from noise. Knows no MPI: records come in rank order, as bytes.
"""

import hashlib
import os
import platform
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi import __version__, settings
from fleet_mpi.errors import EnvironmentProblem, UsageError

ROLES = ("worker", "server")
RECORD_BYTES = 512
UNKNOWN = -1  # an index or a count that a rank does not know

_MAGIC = b"fleetmpi"
_NUMBERS = struct.Struct("<6q")
_TEXTS = (("version", 32), ("endpoint", 96), ("host", 64), ("python", 16), ("numpy", 16), ("listed", 192))


class Member(NamedTuple):
    """One process of the job: its rank in MPI's world, its role, its number in that role, its label, its machine."""

    rank: int
    role: str
    index: int   # type: ignore[assignment]  # a method of tuples
    endpoint: str
    host: str

    def __str__(self) -> str:
        return f"{self.role} {self.index} (rank {self.rank}, host {self.host})"


class Record(NamedTuple):
    """What one rank says of itself when it joins; UNKNOWN where it leaves a number to the others."""

    role: str
    index: int = UNKNOWN   # type: ignore[assignment]  # a method of tuples
    workers: int = UNKNOWN
    servers: int = UNKNOWN
    threads: int = 1
    fingerprint: int = 0  # of the list of servers; 0: none was given
    version: str = __version__
    endpoint: str = ""
    host: str = ""
    python: str = ""
    numpy: str = ""
    listed: str = ""      # that list, as far as it fits: for the warning only


def describe(role: str, index: int | None = None, endpoint: str = "", workers: int | list[str] | None = None,
             servers: int | list[str] | None = None) -> Record:
    """This process's record; ``workers`` and ``servers`` are counts, or lists of labels, or None."""
    if role not in ROLES:
        raise UsageError(f"join: expected role 'worker' or 'server', got {role!r}")
    among = _count(workers if role == "worker" else servers)
    if index is not None and among != UNKNOWN and not 0 <= int(index) < max(1, among):
        raise UsageError(f"this process says that it is {role} {index}, but there are {max(1, among)}, numbered from "
                         f"0: give every process its own number (PADDLE_TRAINER_ID, PADDLE_PSERVER_ID, current_id, "
                         f"trainer_id)")
    listed = "" if servers is None or isinstance(servers, int) else ",".join(servers)
    digest = hashlib.sha256(listed.encode()).digest()
    return Record(
        role, UNKNOWN if index is None else int(index), _count(workers), _count(servers), _threads(),
        int.from_bytes(digest[:7], "little") if listed else 0, endpoint=endpoint, host=socket.gethostname(),
        python=platform.python_version(), numpy=np.__version__, listed=listed)


def encode(record: Record) -> bytes:
    """The record as RECORD_BYTES bytes; texts that do not fit are cut."""
    parts = [_MAGIC, _text_bytes(record.version, 32),
             _NUMBERS.pack(ROLES.index(record.role), record.index, record.workers, record.servers, record.threads,
                           record.fingerprint)]
    parts += [_text_bytes(getattr(record, name), size) for name, size in _TEXTS[1:]]
    return b"".join(parts).ljust(RECORD_BYTES, b"\0")


def decode(data: bytes, rank: int) -> Record:
    """The record in the bytes of ``rank``; a version other than ours is refused before the rest is looked at."""
    data = bytes(data)
    if len(data) != RECORD_BYTES or not data.startswith(_MAGIC):
        raise EnvironmentProblem(f"rank {rank} did not send a record of fleet_mpi when joining; does it run another "
                                 f"program, or another version than {__version__}?")
    version = _text(data[8:40])
    if version != __version__:
        raise EnvironmentProblem(f"rank {rank} runs fleet_mpi {version!r}, this rank {__version__!r}: all ranks must "
                                 f"run the same version")
    numbers = _NUMBERS.unpack_from(data, 40)
    if not 0 <= numbers[0] < len(ROLES):
        raise EnvironmentProblem(f"rank {rank} sent a record with role number {numbers[0]}, which does not exist")
    texts: dict[str, Any] = {"version": version}
    place = 40 + _NUMBERS.size
    for name, size in _TEXTS[1:]:
        texts[name] = _text(data[place:place + size])
        place += size
    return Record(ROLES[numbers[0]], *numbers[1:], **texts)


def arrange(records: Sequence[Record]) -> tuple[tuple[Member, ...], list[str]]:
    """Who is who, from all ranks' records in rank order.

    Returns (members in rank order, warnings). Raises UsageError, naming ranks, where no job follows from them.
    """
    numbers: dict[int, int] = {}
    for role in ROLES:
        numbers.update(_numbered(role, records))
    members = tuple(Member(rank, record.role, numbers[rank], record.endpoint or f"{record.host}:{rank}", record.host)
                    for rank, record in enumerate(records))
    return members, [*_lists_that_differ(records), *_machines_that_differ(records)]


def _numbered(role: str, records: Sequence[Record]) -> dict[int, int]:
    """{rank: index} of all ranks of a role; those that gave no index fill the gaps in rank order."""
    ranks = [rank for rank, record in enumerate(records) if record.role == role]
    taken: dict[int, int] = {}
    for rank in ranks:
        index = records[rank].index
        if index != UNKNOWN and taken.setdefault(index, rank) != rank:
            raise UsageError(f"{_at(taken[index], records)} and {_at(rank, records)} both say that they are {role} "
                             f"{index}: give every process its own number (PADDLE_TRAINER_ID, PADDLE_PORT, current_id)")
    _compare_counts(role, ranks, records)
    for index, rank in taken.items():
        if not 0 <= index < len(ranks):
            raise UsageError(f"{_at(rank, records)} says that it is {role} {index}, but there are {len(ranks)}, "
                             f"numbered from 0")
    free = iter(sorted(set(range(len(ranks))) - set(taken)))
    numbers = {rank: index for index, rank in taken.items()}
    return {rank: numbers[rank] if rank in numbers else next(free) for rank in ranks}


def _compare_counts(role: str, ranks: list[int], records: Sequence[Record]) -> None:
    believed: dict[int, int] = {}
    for rank, record in enumerate(records):
        count = record.workers if role == "worker" else record.servers
        if count != UNKNOWN:
            believed.setdefault(count, rank)
    if len(believed) > 1:
        (one, first), (other, second) = list(believed.items())[:2]
        raise UsageError(f"{_at(first, records)} describes a job with {one} {role}(s), {_at(second, records)} one with "
                         f"{other}: give all ranks the same description")
    for count, rank in believed.items():
        if count != len(ranks):
            raise UsageError(f"{_at(rank, records)} describes a job with {count} {role}(s), but {len(ranks)} of the "
                             f"{len(records)} processes that MPI started took that role ({_ranks(ranks)}): start as "
                             f"many processes as the script describes, or describe as many as are started")


def _lists_that_differ(records: Sequence[Record]) -> Iterator[str]:
    seen: dict[int, int] = {}
    for rank, record in enumerate(records):
        if record.fingerprint:
            seen.setdefault(record.fingerprint, rank)
    if len(seen) > 1:
        first, second = list(seen.values())[:2]
        yield (f"rank {first} lists the servers as {records[first].listed}, rank {second} as {records[second].listed}: "
               f"the lists have equal length, so servers are taken in order, whatever their labels say")


def _machines_that_differ(records: Sequence[Record]) -> Iterator[str]:
    for field, what in (("threads", "thread(s) to compute with"), ("numpy", "as numpy's version"),
                        ("python", "as Python's version")):
        first = getattr(records[0], field)
        for rank, record in enumerate(records):
            if getattr(record, field) != first:
                yield (f"rank 0 has {first} {what}, rank {rank} {getattr(record, field)}: results may differ in their "
                       f"last bits from those of equal ranks")
                break


def _at(rank: int, records: Sequence[Record]) -> str:
    return f"rank {rank} (host {records[rank].host})"


def _ranks(ranks: list[int]) -> str:
    return "none" if not ranks else "rank" + "s" * (len(ranks) > 1) + " " + ", ".join(map(str, ranks))


def _count(given: int | list[str] | None) -> int:
    if given is None:
        return UNKNOWN
    return given if isinstance(given, int) else len(given)


def _threads() -> int:
    # As kernels.threads counts them; a rank bound to one core has one.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return settings.get("FLEET_MPI_THREADS") or cores


def _text_bytes(text: str, size: int) -> bytes:
    return text.encode()[:size].ljust(size, b"\0")


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace")
