"""``fluid.log_helper``: loggers for scripts, on stderr."""

import logging

from fleet_mpi.errors import missing_name as _missing_name


def get_logger(name, level, fmt=None):
    """A logger of this name that writes to stderr; a format given again replaces the one before."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.propagate = False
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(fmt))
    logger.handlers[:] = [handler]
    return logger


__getattr__ = _missing_name("paddle.fluid.log_helper", globals())
