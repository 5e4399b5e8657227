"""Whether MPI takes device buffers: what each kind of library answers, and that none is asked too much.

Under MPI the loaded library itself is asked: tests/mpi/inside/test_device_buffers.py.
"""

import subprocess
import sys

import pytest

from fleet_mpi import settings
from fleet_mpi.collective.cuda_awareness import awareness
from fleet_mpi.errors import EnvironmentProblem


class Library:
    """An MPI library as ctypes would have it: functions that are not given do not exist."""

    def __init__(self, initialized=1, finalized=0, **functions):
        self.MPI_Initialized = lambda flag: put(flag, initialized)
        self.MPI_Finalized = lambda flag: put(flag, finalized)
        self.__dict__.update(functions)


def put(pointer, value):
    pointer._obj.value = value
    return 0


def gpu_query(says, code=0):
    """MPICH's function; it must be asked for CUDA."""
    def query(kind, flag):
        assert kind == 0
        put(flag, says)
        return code
    return {"MPIX_GPU_query_support": query}


def cuda_query(says):
    return {"MPIX_Query_cuda_support": lambda: says}


class Variables(Library):
    """Open MPI without extensions: control variables by name, each stored in so many bytes."""

    def __init__(self, size=1, **values):
        super().__init__()
        self.names, self.size, self.values = list(values), size, values
        self.open_handles, self.sessions = 0, 0

    def MPI_T_init_thread(self, wanted, got):
        self.sessions += 1
        return 0

    def MPI_T_finalize(self):
        self.sessions -= 1
        return 0

    def MPI_T_cvar_get_index(self, name, index):
        if name.decode() not in self.names:
            return 73
        return put(index, self.names.index(name.decode()))

    def MPI_T_cvar_handle_alloc(self, index, what, handle, count):
        self.open_handles += 1
        put(handle, 100 + index.value)
        return put(count, 1)

    def MPI_T_cvar_read(self, handle, room):
        value = self.values[self.names[handle.value - 100]]
        room[:self.size] = int(value).to_bytes(self.size, sys.byteorder)
        return 0

    def MPI_T_cvar_handle_free(self, handle):
        self.open_handles -= 1
        return 0


@pytest.mark.parametrize("library, is_aware, who", (
    (Library(**cuda_query(1)), True, "MPIX_Query_cuda_support says yes"),
    (Library(**cuda_query(0)), False, "MPIX_Query_cuda_support says no"),
    (Library(**cuda_query(0), **gpu_query(1)), True, "MPIX_GPU_query_support says yes"),
    (Library(**cuda_query(0), **gpu_query(0)), False, "MPIX_GPU_query_support says no"),
    (Library(**gpu_query(1)), True, "MPIX_GPU_query_support says yes"),
    (Library(**gpu_query(1, code=16)), False, "MPIX_GPU_query_support says no"),
    (Library(), False, "no way to say so"),
    (Variables(opal_cuda_support=False, opal_built_with_cuda_support=True), False, "opal_cuda_support says no"),
    (Variables(mpi_built_with_cuda_support=True), True, "mpi_built_with_cuda_support says yes"),
    (Variables(size=8, opal_built_with_cuda_support=True), True, "opal_built_with_cuda_support says yes"),
    (Variables(something_else=True), False, "no way to say so"),
))
def test_every_kind_of_library_is_understood(library, is_aware, who):
    found = awareness(library)
    assert found.is_aware is is_aware and who in found.reason
    assert found.in_doubt is is_aware, "a yes is to be tried, a no is believed"


@pytest.mark.parametrize("said, is_aware, reason", (
    ("", False, "Cray MPICH takes GPU buffers with MPICH_GPU_SUPPORT_ENABLED=1 only"),
    ("0", False, "Cray MPICH takes GPU buffers with MPICH_GPU_SUPPORT_ENABLED=1 only"),
    ("1", True, "MPIX_GPU_query_support says yes")))
def test_crays_library_needs_its_variable(said, is_aware, reason):
    def version(text, length):
        text.value = b"MPI VERSION    : CRAY MPICH version 8.1.27"
        return put(length, len(text.value))
    with settings.override(MPICH_GPU_SUPPORT_ENABLED=said):
        found = awareness(Library(**gpu_query(1), MPI_Get_library_version=version))
    assert found.is_aware is is_aware and reason in found.reason


def test_what_is_opened_in_the_tool_interface_is_closed():
    library = Variables(opal_cuda_support=True)
    assert awareness(library).is_aware and (library.open_handles, library.sessions) == (0, 0)


@pytest.mark.parametrize("initialized, finalized", ((0, 0), (1, 1)))
def test_a_library_that_does_not_run_is_not_asked(initialized, finalized):
    def die():
        raise AssertionError("this could have ended the process")
    library = Library(initialized, finalized, MPIX_Query_cuda_support=die)
    assert awareness(library) == (False, "MPI is not running", False)


@pytest.mark.parametrize("said, is_aware", (("yes", True), ("no", False), ("YES", True)))
def test_the_setting_has_the_last_word(said, is_aware):
    with settings.override(FLEET_MPI_CUDA_AWARE=said):
        assert awareness(Library(**cuda_query(not is_aware)))[::2] == (is_aware, False)


def test_other_words_are_refused():
    with settings.override(FLEET_MPI_CUDA_AWARE="perhaps"), pytest.raises(EnvironmentProblem, match="auto, yes or no"):
        awareness(Library())


@pytest.mark.parametrize("before, reason", (
    ("", "no MPI library is loaded"),
    ("import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI", "MPI is not running")))
def test_a_process_without_mpi_is_told_so(before, reason):
    program = f"{before}\nfrom fleet_mpi.collective.cuda_awareness import awareness\nprint(awareness().reason)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == (reason + "\n", 0), ended.stderr
