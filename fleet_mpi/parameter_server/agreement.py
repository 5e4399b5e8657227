"""What two ranks believe of their job, compared: the difference in words.

A fingerprint is {what: value}; a value is a text, a number, a list, or again {name: text}. Knows no programs.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from fleet_mpi.errors import UsageError

Fingerprint: TypeAlias = dict[str, Any]

LONGEST = 1 << 16  # bytes of one value; several of them fit a greeting, which is one message
_SHOWN = 80        # letters of a value in a sentence
_BEFORE = 20       # of them before the first that differs
_MOST = 3          # differences in a sentence


def compact(fingerprint: Fingerprint) -> Fingerprint:
    """The fingerprint with values that are too long to be sent replaced by what tells them apart."""
    return {what: _compacted(value) for what, value in fingerprint.items()}


def _compacted(value: Any) -> Any:
    text = json.dumps(value, sort_keys=True)
    if len(text) <= LONGEST:
        return value
    return f"{len(value)} entries with digest {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def difference(worker: Fingerprint | None, server: Fingerprint | None,
               named: tuple[str, str] = ("the worker", "the server")) -> str:
    """The first differences of a worker's and a server's fingerprint as a text; empty where there is none.

    ``named`` is how the two are called there.
    """
    worker, server = worker or {}, server or {}
    words = []
    for what in (*server, *(what for what in sorted(worker) if what not in server)):
        one, other = worker.get(what), server.get(what)
        if isinstance(one, dict) and isinstance(other, dict):
            words += [_sentence(f"{name} ({what})", one.get(name), other.get(name), named)
                      for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
        elif one != other:
            words.append(_sentence(what, one, other, named))
    more = f"; and {len(words) - _MOST} more" if len(words) > _MOST else ""
    return "; ".join(words[:_MOST]) + more


def refuse_differences(all_have: Sequence[Fingerprint], index: int) -> None:
    """UsageError, on all workers, where one's fingerprint differs from worker 0's; ``index`` is who asks."""
    for number, theirs in enumerate(all_have[1:], 1):
        differ = difference(theirs, all_have[0], (f"worker {number}", "worker 0"))
        if differ:
            error = UsageError(f"worker {number} and worker 0 do not run the same job: {differ}")
            error.reported_by_peer = index > 0
            raise error


def _sentence(what: str, one: object, other: object, named: tuple[str, str]) -> str:
    mine, theirs = str(one), str(other)
    same = next((place for place, (a, b) in enumerate(zip(mine, theirs)) if a != b), min(len(mine), len(theirs)))
    begin = max(0, same - _BEFORE) if max(len(mine), len(theirs)) > _SHOWN else 0
    return f"{what} is {_part(mine, begin)} with {named[0]} and {_part(theirs, begin)} with {named[1]}"


def _part(text: str, begin: int) -> str:
    return ("..." if begin else "") + text[begin:begin + _SHOWN] + ("..." if begin + _SHOWN < len(text) else "")
