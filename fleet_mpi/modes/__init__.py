"""When parameters move: one file per mode, its worker half and its server half together."""

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.modes.sync import SyncServer, SyncWorker

# name -> (worker half, server half)
MODES = {"sync": (SyncWorker, SyncServer)}


def worker_half(name, client, options, workers):
    """The worker half of a mode by name; ``options`` are the mode's own."""
    return _halves(name)[0](client, workers=workers, **options)


def server_half(name, options, workers):
    """The server half of a mode by name."""
    return _halves(name)[1](workers=workers, **options)


def _halves(name):
    if name not in MODES:
        raise UsageError(f"no mode is called {name!r}; {nearest(name, MODES)}")
    return MODES[name]
