"""When parameters move: one file per mode, with its halves and its ``Mode``.

    base                what a mode is, and what others may ask of it
    options             how options are checked
    merging             gradients of several batches in one push
    own_rows            rows that a worker keeps copies of, where workers train by themselves
    sync, half_async, asynchronous, bounded_staleness, delay_compensated, geo   the modes

A new mode is one file and its line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.modes import asynchronous, bounded_staleness, delay_compensated, geo, half_async, sync

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fleet_mpi.modes.base import Mode, ServerHalf, WorkerHalf

# By name, from the strictest to the loosest. Of those that a config asks for, the last one is meant.
MODES = {mode.name: mode for mode in (
    sync.MODE, half_async.MODE, asynchronous.MODE, bounded_staleness.MODE, delay_compensated.MODE, geo.MODE)}


def worker_half(name: str, client: Any, options: Mapping[str, Any] | None = None, workers: int = 1) -> WorkerHalf:
    """The worker half of a mode by name; ``options`` are the mode's, for either half."""
    half = named(name, options).worker
    return half(client, workers=workers, **_of(half, options))


def server_half(name: str, options: Mapping[str, Any] | None = None, workers: int = 1) -> ServerHalf:
    """The server half of a mode by name; ``options`` are the mode's, for either half."""
    half = named(name, options).server
    return half(workers=workers, **_of(half, options))


def named(name: str, options: Mapping[str, Any] | None = None) -> Mode:
    """The mode of this name, which must have these options."""
    if name not in MODES:
        raise UsageError(f"no mode is called {name!r}; {nearest(name, MODES)}")
    known = [option for half in (MODES[name].worker, MODES[name].server) for option in half.options]
    for option in options or ():
        if option not in known:
            raise UsageError(f"mode {name!r} has no option {option!r}; "
                             + (nearest(option, known) if known else "it has none"))
    return MODES[name]


def _of(half: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    return {option: value for option, value in (options or {}).items() if option in half.options}
