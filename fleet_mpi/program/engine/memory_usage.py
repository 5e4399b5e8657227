"""How much memory a program may need, estimated from its variables' shapes."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import Program

_UNITS = ("B", "KB", "MB", "GB")


def memory_usage(program, batch_size):
    """(least, most, unit): what persists plus what is fed, and all variables side by side, for one batch.

    The truth lies between: temporaries that do not live at the same time share memory.
    """
    if not isinstance(program, Program):
        raise UsageError(f"memory_usage: expected a Program, got {type(program).__name__}")
    if not isinstance(batch_size, int) or batch_size <= 0:
        raise UsageError(f"memory_usage: batch_size must be a whole number above 0, got {batch_size!r}")
    sizes = [(var, _size_bytes(var, batch_size)) for var in program.list_vars()]
    least = sum(size for var, size in sizes if var.persistable or var.is_data)
    most = sum(size for _, size in sizes)
    power = min(int(math.log(most, 1024)) if most else 0, len(_UNITS) - 1)
    return least / 1024 ** power, most / 1024 ** power, _UNITS[power]


def _size_bytes(var, batch_size):
    if var._dtype is None:
        return 0
    return math.prod(batch_size if size < 0 else size for size in var.shape) * var._dtype.itemsize
