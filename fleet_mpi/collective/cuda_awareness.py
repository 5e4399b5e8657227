"""Whether the MPI library that this process has loaded says that it takes buffers in GPU memory.

Libraries say so by functions of their own (``MPIX_Query_cuda_support`` of Open MPI, MPICH and others,
``MPIX_GPU_query_support`` of MPICH), or, Open MPI without these extensions, by a control variable. All are asked
through ctypes, and only while MPI runs: a library that lacks one of them is not called, none is asked in a state it
could die in, and nothing is sent to find out: a yes is in doubt until ``cuda_trial`` has tried. Knows neither mpi4py
nor cupy.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable

SETTING = "FLEET_MPI_CUDA_AWARE"
CRAY = "MPICH_GPU_SUPPORT_ENABLED"
_ANSWERS = {"yes": True, "no": False}
_CUDA = 0  # MPIX_GPU_SUPPORT_CUDA
# By whichever name the version at hand has; "built with" comes last, since it may be switched off at run time.
_BUILD_VARIABLES = (b"opal_cuda_support", b"mpi_built_with_cuda_support", b"opal_built_with_cuda_support")
_FOUND = 0  # MPI_SUCCESS
_VERSION_LETTERS = 8192  # MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest there is


class Awareness(NamedTuple):
    """Whether device buffers may be handed to MPI, who says so, and whether that should be tried before."""

    is_aware: bool
    reason: str
    in_doubt: bool = False


def awareness(library: ctypes.CDLL | None = None) -> Awareness:
    """What the setting says or, with auto, the MPI library (None: the one that this process has loaded)."""
    wanted = settings.get(SETTING).lower()
    if wanted in _ANSWERS:
        return Awareness(_ANSWERS[wanted], f"{SETTING}={wanted}")
    if wanted != "auto":
        raise EnvironmentProblem(f"{SETTING}: expected auto, yes or no, got {wanted!r}")
    if library is None:
        library = loaded_library()
    if library is None:
        return Awareness(False, "no MPI library is loaded")
    if not _runs(library):
        return Awareness(False, "MPI is not running")
    if "CRAY MPICH" in _version(library) and settings.get(CRAY) != "1":
        return Awareness(False, f"Cray MPICH takes GPU buffers with {CRAY}=1 only, and where it is linked with "
                                f"libmpi_gtl_cuda")
    return _asked(library)


def loaded_library() -> ctypes.CDLL | None:
    """The MPI library of this process as ctypes has it; None where there is none."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libmpi" in line}
    except OSError:
        paths = set()  # no Linux: what is visible to everybody is all that can be found
    for path in (*sorted(paths, key=len), None):
        library = _opened(path)
        if library is not None and hasattr(library, "MPI_Initialized"):
            return library
    return None


def _opened(path: str | None) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path)  # loaded already: this counts one more user of it
    except OSError:
        return None


def _runs(library: ctypes.CDLL) -> bool:
    """These two may be called at any time; what they say decides whether others may."""
    return _flag(library.MPI_Initialized) and not _flag(library.MPI_Finalized)


def _flag(function: Callable[..., int]) -> bool:
    flag = ctypes.c_int(0)
    return function(ctypes.byref(flag)) == _FOUND and bool(flag.value)


def _version(library: ctypes.CDLL) -> str:
    """What the library calls itself, in capitals; empty where it does not say."""
    if not hasattr(library, "MPI_Get_library_version"):
        return ""
    text, length = ctypes.create_string_buffer(_VERSION_LETTERS + 1), ctypes.c_int(0)
    library.MPI_Get_library_version(text, ctypes.byref(length))
    return text.value.decode(errors="replace").upper()


def _asked(library: ctypes.CDLL) -> Awareness:
    """The first answer of those that this library can give."""
    for ask in (_by_query, _by_gpu_query, _by_variable):
        found = ask(library)
        if found is not None:
            return found
    return Awareness(False, "the MPI library has no way to say so")


def _by_query(library: ctypes.CDLL) -> Awareness | None:
    if not hasattr(library, "MPIX_Query_cuda_support"):
        return None
    says = bool(library.MPIX_Query_cuda_support())
    # MPICH's older versions answer the general question only.
    return None if not says and hasattr(library, "MPIX_GPU_query_support") else _told("MPIX_Query_cuda_support", says)


def _by_gpu_query(library: ctypes.CDLL) -> Awareness | None:
    if not hasattr(library, "MPIX_GPU_query_support"):
        return None
    supported = ctypes.c_int(0)
    failed = library.MPIX_GPU_query_support(_CUDA, ctypes.byref(supported))
    return _told("MPIX_GPU_query_support", failed == _FOUND and bool(supported.value))


def _by_variable(library: ctypes.CDLL) -> Awareness | None:
    """Open MPI built without extensions: its build and its settings are control variables of MPI's tool interface."""
    if not hasattr(library, "MPI_T_cvar_get_index"):
        return None
    level = ctypes.c_int(0)
    if library.MPI_T_init_thread(0, ctypes.byref(level)) != _FOUND:
        return None
    try:
        for name in _BUILD_VARIABLES:
            value = _variable(library, name)
            if value is not None:
                return _told(name.decode(), value)
    finally:
        library.MPI_T_finalize()
    return None


def _variable(library: ctypes.CDLL, name: bytes) -> bool | None:
    """A bool of the library, None where it has none of this name."""
    index, handle, count = ctypes.c_int(-1), ctypes.c_void_p(), ctypes.c_int(0)
    if library.MPI_T_cvar_get_index(name, ctypes.byref(index)) != _FOUND:
        return None
    if library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)) != _FOUND:
        return None
    room = ctypes.create_string_buffer(64)  # one value of any type: bools are stored in one, four or eight bytes
    failed = count.value != 1 or library.MPI_T_cvar_read(handle, room) != _FOUND
    library.MPI_T_cvar_handle_free(ctypes.byref(handle))
    return None if failed else any(room.raw)


def _told(who: str, says: bool) -> Awareness:
    return Awareness(says, f"{who} says {'yes' if says else 'no'}", in_doubt=says)
