"""Where compiled kernels are kept when neither NUMBA_CACHE_DIR, nor the package, nor the home folder can be written to.

Compiled code is run by whoever reads it, so the folder must be this user's alone. Ranks and later jobs of this user
share one by its name; if that name is taken by somebody else, every process has its own, which ends with it. Knows no
numba.
"""

import atexit
import functools
import os
import shutil
import stat
import tempfile

from fleet_mpi import notices

_WHY = "no folder for compiled kernels can be written to (NUMBA_CACHE_DIR, the package's own, ~/.cache)"
_CURE = "export NUMBA_CACHE_DIR=FOLDER chooses another"


@functools.cache
def temporary_folder():
    """The path of the folder, or None where nothing can be written at all; in one line of each machine."""
    path, what = _choose()
    if notices.speaks_for_machine():
        notices.log().warning("%s: %s; %s", _WHY, what, _CURE)
    return path


def is_used():
    """Whether a kernel of this process needed that folder."""
    return temporary_folder.cache_info().currsize > 0


def _choose():
    """(folder or None, what that means)."""
    try:
        shared = os.path.join(tempfile.gettempdir(), f"fleet_mpi-{os.geteuid()}")
        if _is_private(shared):
            return shared, f"they are kept in {shared}"
        own = tempfile.mkdtemp(prefix="fleet_mpi-")
    except OSError:
        return None, "every rank compiles them anew"
    atexit.register(_remove, own, os.getpid())
    return own, f"they are kept in {own} until this process ends ({shared} is not this user's alone)"


def _is_private(path):
    """Make the folder unless it is there; whether it is this user's, and nobody else may enter it."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    about = os.lstat(path)  # a link may lead to anybody's folder
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & 0o077


def _remove(path, process):
    if os.getpid() == process:  # a fork inherits this callback, not the folder
        shutil.rmtree(path, ignore_errors=True)
