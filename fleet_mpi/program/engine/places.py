"""Places: where a program runs. A GPU that is not there falls back to the CPU, in one log line."""

import functools

import numpy as np

from fleet_mpi import arrays, notices, settings
from fleet_mpi.errors import EnvironmentProblem, UsageError, installing
from fleet_mpi.ranks import devices

_TOLD = 120  # letters of an error's text


class Place:
    """Base of all places; equal when of the same kind and device."""

    device_id = 0

    def __eq__(self, other):
        return type(self) is type(other) and self.device_id == other.device_id

    def __hash__(self):
        return hash((type(self), self.device_id))

    def get_device_id(self):
        """The number of the device."""
        return self.device_id

    def array_module(self):
        """The module that computes here."""
        return np


class CPUPlace(Place):
    """The host's memory and cores."""

    def __repr__(self):
        return "CPUPlace"


class CUDAPinnedPlace(CPUPlace):
    """Page-locked host memory; here the same as CPUPlace."""

    def __repr__(self):
        return "CUDAPinnedPlace"


class CUDAPlace(Place):
    """A GPU by number (none given: this rank's); the CPU where there is none (FLEET_MPI_STRICT_DEVICE=1: an error)."""

    def __init__(self, device_id=None):
        self.device_id = own_device() if device_id is None else int(device_id)

    def __repr__(self):
        return f"CUDAPlace({self.device_id})"

    def array_module(self):
        """cupy with this device chosen, or numpy where no GPU is usable."""
        problem = why_no_gpu()
        if problem is None:
            self._refuse_an_unseen_one()
            xp = arrays.cupy_module()
            xp.cuda.Device(self.device_id).use()
            return xp
        if settings.get("FLEET_MPI_STRICT_DEVICE"):
            raise EnvironmentProblem(f"{self}: {problem}, and FLEET_MPI_STRICT_DEVICE is set")
        if not devices.local_rank():  # one line for all ranks of a machine
            notices.once("place", f"{self}: {problem}; running on the CPU instead")
        return np

    def _refuse_an_unseen_one(self):
        count = cuda_device_count()
        if not 0 <= self.device_id < count:
            raise EnvironmentProblem(f"{self}: expected a GPU from 0 to {count - 1}, as this process sees {count}; "
                                     f"FLAGS_selected_gpus and --gpus count those that CUDA_VISIBLE_DEVICES leaves")


@functools.cache
def why_no_gpu():
    """Why no GPU can be used, as words; None where one can."""
    try:
        xp = arrays.cupy_module()
    except ImportError:
        return f"cupy is not installed ({installing('cuda12', 'cuda13')})"
    try:
        count = xp.cuda.runtime.getDeviceCount()
    except Exception as error:  # cupy raises its own kinds for a missing or old driver
        return f"no usable GPU ({type(error).__name__})"
    return _why_it_does_not_compute(xp, count) if count else "no GPU on this machine"


def _why_it_does_not_compute(xp, count):
    """cupy's wheels carry no NVRTC and no cuBLAS, which are missed only once something is computed; None: nothing is.

    Tried on this rank's own device: a context costs memory on any other.
    """
    own = devices.own_device(count)
    for part, compute in (("NVRTC", lambda one: one + one), ("cuBLAS", lambda one: one @ one)):
        try:
            with xp.cuda.Device(own if own < count else 0):
                xp.asnumpy(compute(xp.asarray(np.ones((2, 2), np.float32))))
        except Exception as error:  # a library that is not found or does not fit: cupy raises many kinds
            version = xp.cuda.runtime.runtimeGetVersion() // 1000
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:_TOLD]}"
            return f"cupy finds a GPU but cannot compute: {part} is missing or does not work ({told}); " \
                   f"{installing(f'cuda{version}')} brings it"
    return None


def is_compiled_with_cuda():
    """Whether a GPU can be used here and now."""
    return why_no_gpu() is None


def cuda_device_count():
    """How many GPUs can be used."""
    return 0 if why_no_gpu() else arrays.cupy_module().cuda.runtime.getDeviceCount()


def own_device():
    """The number of the GPU that is this rank's: see ``ranks.devices``."""
    return devices.own_device(0 if devices.selected() else cuda_device_count())


_chosen = None


def set_device(device):
    """Let executors without a place run on "cpu", "gpu" or "gpu:N" from now on; returns the place."""
    global _chosen
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "gpu") or number and not number.isdigit() or kind == "cpu" and number:
        raise UsageError(f"set_device: expected 'cpu', 'gpu' or 'gpu:0', got {device!r}")
    _chosen = CPUPlace() if kind == "cpu" else CUDAPlace(int(number) if number else None)
    return _chosen


def get_device():
    """What ``set_device`` chose, as text."""
    place = default_place()
    return f"gpu:{place.device_id}" if isinstance(place, CUDAPlace) else "cpu"


def default_place():
    """Where an executor without a place runs: as ``set_device`` said, else the CPU."""
    return _chosen if _chosen is not None else CPUPlace()


def cpu_places(device_count=None):
    """A list of CPU places: as many as asked for, else CPU_NUM, else one."""
    return [CPUPlace()] * (device_count or settings.get("CPU_NUM") or 1)


def cuda_pinned_places(device_count=None):
    """A list of places of page-locked memory, as many as ``cpu_places``."""
    return [CUDAPinnedPlace()] * len(cpu_places(device_count))


def cuda_places(device_ids=None):
    """A list of GPU places: those asked for; else, in a job, this rank's; else FLAGS_selected_gpus, else all."""
    if device_ids is None and devices.local_rank() is not None:
        device_ids = [own_device()]
    elif device_ids is None:
        device_ids = devices.selected() or range(cuda_device_count())
    return [CUDAPlace(one) for one in device_ids]
