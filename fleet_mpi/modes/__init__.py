"""When parameters move: one file per mode, with its server half and, unless it is ``each_step``'s, its worker half.

The worker half is told of every step (``after_backward``), of parameters that came from elsewhere (``restart``) and
of the end (``finish``). The server half is started with its server and told of every piece of a push that comes in
pieces, every whole push, every pull and every worker that leaves; ``late`` names the workers that others have waited
for too long. Both know names and arrays, never a program. A new mode is one file and its line here.
"""

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.modes.asynchronous import AsyncServer, AsyncWorker
from fleet_mpi.modes.bounded_staleness import BoundedStalenessServer
from fleet_mpi.modes.delay_compensated import DelayCompensatedServer
from fleet_mpi.modes.each_step import EachStepWorker
from fleet_mpi.modes.geo import GeoServer, GeoWorker
from fleet_mpi.modes.half_async import HalfAsyncServer, HalfAsyncWorker
from fleet_mpi.modes.sync import SyncServer

# name -> (worker half, server half)
MODES = {
    "sync": (EachStepWorker, SyncServer),
    "async": (AsyncWorker, AsyncServer),
    "half_async": (HalfAsyncWorker, HalfAsyncServer),
    "geo": (GeoWorker, GeoServer),
    "delay_compensated": (EachStepWorker, DelayCompensatedServer),
    "bounded_staleness": (EachStepWorker, BoundedStalenessServer),
}


def worker_half(name, client, options=None, workers=1):
    """The worker half of a mode by name; ``options`` are the mode's, for either half."""
    half = _halves(name, options)[0]
    return half(client, workers=workers, **_of(half, options))


def server_half(name, options=None, workers=1):
    """The server half of a mode by name; ``options`` are the mode's, for either half."""
    half = _halves(name, options)[1]
    return half(workers=workers, **_of(half, options))


def _halves(name, options):
    if name not in MODES:
        raise UsageError(f"no mode is called {name!r}; {nearest(name, MODES)}")
    known = [option for half in MODES[name] for option in half.options]
    for option in options or ():
        if option not in known:
            raise UsageError(f"mode {name!r} has no option {option!r}; "
                             + (nearest(option, known) if known else "it has none"))
    return MODES[name]


def _of(half, options):
    return {option: value for option, value in (options or {}).items() if option in half.options}
