"""``paddle.utils``: unique names, version checks, marks for old functions, curves."""

import importlib as _importlib

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import unique_name
from fleet_mpi.fluid.annotations import deprecated as _deprecated
from fleet_mpi.program.graph.version import require_version


def deprecated(update_to="", since="", reason="", level=0):
    """Decorator: a function's first call logs that another should be called instead."""
    return _deprecated(since, update_to or "another", reason)


def try_import(module_name, err_msg=None):
    """A module by name; ImportError with these words where it is not installed."""
    try:
        return _importlib.import_module(module_name)
    except ImportError:
        raise ImportError(err_msg or f"{module_name} is not installed: pip install {module_name}") from None


__getattr__ = _missing_name("paddle.utils", globals(), {
    "download": "fleet_mpi.paddle.utils.download",
    "cpp_extension": "fleet_mpi.fluid.refused_modules:utils_cpp_extension",
    "profiler": "fleet_mpi.fluid.profiler",
    "plot": "fleet_mpi.paddle.utils.plot", "Ploter": "fleet_mpi.paddle.utils.plot",
    "run_check": "fleet_mpi.fluid.install_check"})
