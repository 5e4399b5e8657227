"""What the package tells its user: log lines on stderr, never on stdout.

Knows the logger's name and form; not what is said.
"""

import logging
import os
import sys

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem

_said = set()
_ENVIRONMENT = "environment"


def log():
    """The package's logger, writing to the present ``sys.stderr`` from ``FLEET_MPI_LOG`` upwards."""
    logger = logging.getLogger("fleet_mpi")
    if not logger.handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("fleet_mpi: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(_level())
        # A script's root handler would say everything a second time, and perhaps on stdout.
        logger.propagate = False
    return logger


def once(key, text):
    """Log a warning the first time this process comes with this ``key``."""
    if key not in _said:
        _said.add(key)
        log().warning(text)


def speaks_for_job():
    """Whether this process is rank 0 as its launcher counts, or has no launcher; known before MPI starts."""
    return _is_first("PMIX_RANK", "PMI_RANK", "PALS_RANKID")


def speaks_for_machine():
    """As ``speaks_for_job``, of the ranks on this machine."""
    return _is_first("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")


def check_environment():
    """Refuse settings with a wrong value; warn, once in a job, of variables that look like settings and are none."""
    if _ENVIRONMENT in _said:
        return
    settings.check()
    _said.add(_ENVIRONMENT)
    if speaks_for_job():
        for name, cure in settings.strangers(os.environ):
            log().warning("environment variable %s means nothing here; %s", name, cure)


def _is_first(*names):
    return max(settings.get(name) for name in names) <= 0


def stand_in(set_name, what, folder):
    """Say, once per set, that synthetic data takes the place of files that are not there."""
    once(("stand-in", set_name), f"{set_name}: no files under {folder}, using synthetic data ({what})")


def _level():
    name = settings.get("FLEET_MPI_LOG").upper()
    if name not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise EnvironmentProblem(f"FLEET_MPI_LOG: expected debug, info, warning or error, got {name.lower()!r}")
    return name


class _Stderr(logging.StreamHandler):
    """Looks ``sys.stderr`` up at every line, since tests and launchers exchange it."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr
