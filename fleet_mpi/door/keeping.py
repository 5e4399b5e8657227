"""Which rows a table without height keeps, as callers say it: words that become the plain data of ``Keeping``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.modes.options import number, whole
from fleet_mpi.parameter_server.tables.growing.admission import MOST_COUNTED
from fleet_mpi.parameter_server.tables.growing.eviction import EVICTIONS, LEAST_KEPT
from fleet_mpi.parameter_server.tables.growing.keeping import EVERYTHING, Keeping
from fleet_mpi.parameter_server.tables.growing.score import SCORES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ADMISSIONS = ("all", "seen", "probability")
WHEN_FULL = ("refuse", "evict")
# What ``Job.table`` has where nothing is said.
UNSAID: dict[str, Any] = {"admit": "all", "score": None, "evict": None, "evict_every": 100, "budget_bytes": None,
                          "when_full": "refuse"}


def checked(said: Mapping[str, Any], what: str) -> Keeping:
    """All words of UNSAID as plain data."""
    evict = _evict(said["evict"], f"{what}: evict")
    score = _score(said["score"], evict, what)
    budget = said["budget_bytes"]
    when_full = _named(said["when_full"], WHEN_FULL, f"{what}: when_full")
    if when_full == "evict" and evict[:1] != ("at_most",):
        raise UsageError(f"{what}: when_full=\"evict\" forgets the rows with the lowest scores, as evict=(\"at_most\", "
                         f"n) does: expected both, got evict={said['evict']!r}")
    every = whole(f"{what}: evict_every", said["evict_every"], 1)
    return Keeping(_admit(said["admit"], f"{what}: admit"), score, evict, every if evict else 1,
                   None if budget is None else whole(f"{what}: budget_bytes", budget, 1), when_full)


def from_plain(words: Iterable[Any]) -> Keeping:
    """As it was before it travelled as JSON."""
    plain: list[Any] = [tuple(one) if isinstance(one, list) else one for one in words]
    return Keeping(*plain)


def in_words(keeping: Keeping) -> str:
    """What differs from a table that keeps everything, for people."""
    said = [f"{name}={value!r}" for name, value, usual in zip(keeping._fields, keeping, EVERYTHING) if value != usual]
    return f" keeping {', '.join(said)}" if said else ""


def refuse_said(said: Mapping[str, Any], what: str) -> None:
    """UsageError where anything was said of a table that has all of its rows always."""
    for name, value in said.items():
        if value != UNSAID[name]:
            raise UsageError(f"{what}: {name}={value!r}: a table with height keeps every row: leave out one of the two")


def checked_shrink(keeping: Keeping, older_than: Any, fewer_than: Any, what: str) -> tuple[str, int]:
    """(name of an eviction, its number) from what ``Table.shrink`` was told."""
    given = {name: value for name, value in (("older_than", older_than), ("fewer_than", fewer_than))
             if value is not None}
    if len(given) != 1:
        raise UsageError(f"{what}: expected older_than=n or fewer_than=n, got {given or 'neither'}")
    (name, value), = given.items()
    if keeping.score != EVICTIONS[name].score:
        raise UsageError(f"{what}: {name} looks at the score {EVICTIONS[name].score!r}, the table keeps "
                         f"{keeping.score or 'none'!r}: declare it with score=\"{EVICTIONS[name].score}\"")
    return name, whole(f"{what}: {name}", value, 1)


def _admit(said: Any, what: str) -> tuple[Any, ...]:
    if said == "all":
        return ()
    name, value = _pair(said, ADMISSIONS[1:], what, "\"all\", (\"seen\", k) or (\"probability\", p)")
    if name == "probability":
        if not number(f"{what} {name!r}", value, 0.0, 1.0):
            raise UsageError(f"{what} {name!r}: with 0 no row is ever stored")
        return name, float(value)
    if whole(f"{what} {name!r}", value, 1) > MOST_COUNTED:
        raise UsageError(f"{what} {name!r}: pushes are counted up to {MOST_COUNTED}, got {value!r}")
    return name, int(value)


def _evict(said: Any, what: str) -> tuple[Any, ...]:
    if said is None:
        return ()
    name, value = _pair(said, EVICTIONS, what, "None, (\"older_than\", n), (\"fewer_than\", n) or (\"at_most\", n)")
    if whole(f"{what} {name!r}", value, 1) < LEAST_KEPT and name == "at_most":
        raise UsageError(f"{what} {name!r}: each of 1024 partitions of ids keeps its share of the rows, which needs at "
                         f"least {LEAST_KEPT:,} to be even; so few rows as {value!r} need no eviction")
    return name, int(value)


def _score(said: Any, evict: tuple[Any, ...], what: str) -> str:
    """The score that was asked for, or that the eviction looks at."""
    wanted = EVICTIONS[evict[0]].score if evict else ""
    score = wanted if said is None else _named(said, SCORES, f"{what}: score")
    if wanted and score != wanted:
        raise UsageError(f"{what}: evict={evict!r} looks at the score {wanted!r}, got score={said!r}")
    if evict and not score:
        raise UsageError(f"{what}: evict={evict!r} keeps the rows with the highest scores: say which with "
                         f"score=\"last_seen\" or score=\"count\"")
    return score


def _pair(said: Any, names: Iterable[str], what: str, expected: str) -> tuple[str, Any]:
    """(a known name, what goes with it)."""
    if isinstance(said, str):
        said = said, None
    if not isinstance(said, (tuple, list)) or len(said) != 2:
        raise UsageError(f"{what}: expected {expected}, got {said!r}")
    name = _named(said[0], names, what)
    if said[1] is None:
        raise UsageError(f"{what}: expected {expected}, got {name!r} without a number")
    return name, said[1]


def _named(said: Any, names: Iterable[str], what: str) -> str:
    if said not in tuple(names):
        raise UsageError(f"{what}: nothing is called {said!r} here; {nearest(str(said), tuple(names))}")
    return str(said)
