"""``paddle`` for scripts that plain Python runs: found on ``sys.path``, it becomes this package's names.

A .pth file or PYTHONPATH lists this file's folder; nothing here runs before a script imports ``paddle``. A paddle that
is installed is never shadowed: it is looked for everywhere else, and loaded in place of this module. Imports the
standard library only, since that paddle's users must not wait for this package.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
_OURS = os.path.join("fleet_mpi", "names")  # of any copy of this package: two on one path must not find each other


def installed():
    """The spec of the paddle that is installed elsewhere, or None."""
    elsewhere = [entry for entry in sys.path if not os.path.abspath(entry).endswith(os.sep + _OURS)]
    for finder in sys.meta_path:
        if not hasattr(finder, "find_spec") or type(finder).__module__.startswith("fleet_mpi."):
            continue
        found = finder.find_spec("paddle", elsewhere if finder is importlib.machinery.PathFinder else None)
        if found is not None and found.origin is not None:  # a mere folder of this name has no origin
            return found
    return None


def become():
    """Put the installed paddle, or else this package's, in the place of this module."""
    spec = installed()
    if spec is None:
        sys.modules["paddle"] = _ours()
        return
    sys.modules["paddle"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["paddle"])


def _ours():
    try:
        # By name: standing_in lies above this folder.
        return importlib.import_module("fleet_mpi.paddle.standing_in").by_path(FOLDER)
    except ModuleNotFoundError as error:
        if error.name != "fleet_mpi":
            raise
        raise ModuleNotFoundError(f"No module named 'paddle': fleet_mpi, whose names {FOLDER} offers, is not installed "
                                  f"in this environment any more; delete fleet_mpi_names.pth or install fleet_mpi "
                                  f"again",
                                  name="paddle") from None


if __name__ == "paddle":
    become()
