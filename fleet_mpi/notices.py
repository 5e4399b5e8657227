"""What the package tells its user: log lines on stderr, never on stdout, unless the application routes them.

The logger ``fleet_mpi`` is the application's: the handler here is added where it has none, may be taken away, and is
silent once the logger propagates to handlers of the root; a level that the application has set counts. Knows the
logger's name and form; not what is said.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Hashable

_said: set[Hashable] = set()
_ENVIRONMENT = "environment"


def log() -> logging.Logger:
    """The package's logger, open from ``FLEET_MPI_LOG`` upwards unless the application has set its level."""
    if _logger.level == logging.NOTSET:
        _logger.setLevel(_level())
    return _logger


def once(key: Hashable, text: str) -> None:
    """Log a warning the first time this process comes with this ``key``."""
    if key not in _said:
        _said.add(key)
        log().warning(text)


def speaks_for_job() -> bool:
    """Whether this process is rank 0 as its launcher counts, or has no launcher; known before MPI starts."""
    return _is_first("PMIX_RANK", "PMI_RANK", "PALS_RANKID")


def speaks_for_machine() -> bool:
    """As ``speaks_for_job``, of the ranks on this machine."""
    return _is_first("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")


def check_environment() -> None:
    """Refuse settings with a wrong value; warn, once in a job, of variables that look like settings and are none."""
    if _ENVIRONMENT in _said:
        return
    settings.check()
    _said.add(_ENVIRONMENT)
    if speaks_for_job():
        for name, cure in settings.strangers(os.environ):
            log().warning("environment variable %s means nothing here; %s", name, cure)


def _is_first(*names: str) -> bool:
    return max(settings.get(name) for name in names) <= 0


def stand_in(set_name: str, what: str, folder: object) -> None:
    """Say, once per set, that synthetic data takes the place of files that are not there."""
    once(("stand-in", set_name), f"{set_name}: no files under {folder}, using synthetic data ({what})")


def _level() -> str:
    name = settings.get("FLEET_MPI_LOG").upper()
    if name not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise EnvironmentProblem(f"FLEET_MPI_LOG: expected debug, info, warning or error, got {name.lower()!r}")
    return name


class _Stderr(logging.Handler):
    """Writes to the ``sys.stderr`` of the moment: tests and launchers exchange it."""

    def emit(self, record: logging.LogRecord) -> None:
        if _logger.propagate and logging.getLogger().handlers:
            return
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def _new_logger() -> logging.Logger:
    """The logger as the application left it, or with a handler of ours."""
    logger = logging.getLogger("fleet_mpi")
    if not logger.handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("fleet_mpi: %(message)s"))
        logger.addHandler(handler)
        # A script's root handler would say everything a second time, and perhaps on stdout.
        logger.propagate = False
    return logger


_logger = _new_logger()
