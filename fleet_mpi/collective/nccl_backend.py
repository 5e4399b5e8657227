"""All-reduce by NCCL, through cupy: from device to device, beside the computing, in an order of NCCL's own.

The first choice for arrays on devices; MPI only carries the id by which the ranks find each other. Written against
cupy's documented interface and tried with emulations of it; NOT yet run on hardware. Sums depend on NCCL's order: for
the same bits at every run, choose exact.

The host does not wait for a sum: what is launched next follows it on the device. Before the host waits for the device
for another reason, it polls the sums that it went on from (``Group.left_behind``), since a wait for the device cannot
be given up when a peer is lost.

A communicator waits for its peers even when it is destroyed. So whoever learns that a peer is lost must ``abort`` it.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import event_of, is_host
from fleet_mpi.errors import EnvironmentProblem, PeerLost, UsageError

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reduction

ID_NUMBERS = 128  # of NCCL's unique id
_TYPES = {"float16": "NCCL_FLOAT16", "float32": "NCCL_FLOAT32", "float64": "NCCL_FLOAT64", "int32": "NCCL_INT32",
          "int64": "NCCL_INT64"}


class NcclAllReduce:
    """Sums arrays over the devices of all ranks; all must start the same arrays in the same order."""

    def __init__(self, xp: ModuleType, nccl: ModuleType, index: int, size: int, unique_id: Any,
                 left_behind: list[Reduction] | None = None) -> None:
        self.xp, self.nccl, self.index, self.size = xp, nccl, index, size
        self.left_behind: list[Reduction] = [] if left_behind is None else left_behind
        self.communicator = nccl.NcclCommunicator(size, unique_id, index)
        self.stream = xp.cuda.Stream(non_blocking=True)

    @classmethod
    def of(cls, group: Group, xp: ModuleType) -> list[NcclAllReduce]:
        """Collective: one for every lane of a group, on this rank's present device. Waits for all ranks.

        EnvironmentProblem, on all ranks, where NCCL does not begin on one. NCCL's own meeting cannot be given up: a
        rank that ends before it must end the job (``cluster.guard`` does).
        """
        nccl, made, problem = module_for(xp), [], ""
        for _ in group.lanes:
            unique_id = shared_id(group, nccl)
            try:
                made.append(cls(xp, nccl, group.index, group.size, unique_id, group.left_behind))
            except Exception as error:  # cupy has its own kind, in a module that is there with NCCL only
                problem = f"worker {group.index}: NCCL did not begin: {error}; NCCL_DEBUG=INFO tells more"
        problem = next(filter(None, group.gather_values(problem)), "")
        if problem:
            for one in made:
                one.abort()
            raise EnvironmentProblem(problem)
        group.at_failure += [one.abort for one in made]
        return made

    def start(self, array: Array) -> Reduction:
        """Begin to replace a contiguous array on the device, on every rank, by the sum; returns what to advance."""
        if self.communicator is None:
            raise PeerLost(f"worker {self.index}: NCCL was given up after a failure: begin again from what was saved")
        if is_host(array):
            raise UsageError("all-reduce by NCCL: expected an array on a GPU, got one on the host: run the program on "
                             "a CUDAPlace, or choose FLEET_MPI_ALLREDUCE=exact or fast")
        if array.dtype.name not in _TYPES:
            raise UsageError(f"all-reduce by NCCL: expected {', '.join(_TYPES)}, got {array.dtype}; "
                             f"FLEET_MPI_ALLREDUCE=exact sums it")
        # Only what was computed so far is waited for; what comes is computed meanwhile.
        self.stream.wait_event(event_of(self.xp, self.xp.cuda.get_current_stream()))
        kind, address = getattr(self.nccl, _TYPES[array.dtype.name]), array.data.ptr
        self.communicator.allReduce(address, address, array.size, kind, self.nccl.NCCL_SUM, self.stream.ptr)
        return _Reduction(self, array, event_of(self.xp, self.stream))

    def abort(self) -> None:
        """Free this rank of its peers, whatever they do; nothing can be summed any more. Idempotent."""
        communicator, self.communicator = self.communicator, None
        if communicator is not None:
            communicator.abort()


class _Reduction:
    """One array, as the host sees it: nothing is left to do once the sum is queued."""

    def __init__(self, owner, array, event):
        self.on_device, self.is_followed = _OnDevice(owner, array, event), False

    def advance(self):
        """Nothing is left to do; PeerLost where NCCL has failed."""
        self.on_device.require_peers()
        return False

    def is_over(self):
        """Always; what is computed from now on comes after the sum."""
        if not self.is_followed:
            owner = self.on_device.owner
            owner.xp.cuda.get_current_stream().wait_event(self.on_device.event)
            owner.left_behind.append(self.on_device)
            self.is_followed = True
        return True

    def waits_for(self):
        """Nobody."""
        return []


class _OnDevice:
    """One array, as the device sees it; kept from being freed until it is over."""

    def __init__(self, owner: NcclAllReduce, array: Array, event: Any) -> None:
        self.owner, self.array, self.event, self.done = owner, array, event, False

    def advance(self) -> bool:
        """Look whether the device has come so far; returns whether it has, for the first time.

        PeerLost where NCCL says that it never will.
        """
        if self.done or self.owner.communicator is None:
            return False
        self.require_peers()
        self.done = self.event.done
        return self.done

    def require_peers(self):
        """PeerLost where NCCL has failed."""
        if self.owner.communicator is None:
            return
        try:
            self.owner.communicator.check_async_error()
        except Exception as error:
            self.owner.abort()
            raise PeerLost(f"worker {self.owner.index}: NCCL gave up an all-reduce of {self.array.nbytes} bytes: "
                           f"{error}") from error

    def is_over(self) -> bool:
        """Whether the array is the sum."""
        return self.done

    def waits_for(self) -> list[int]:
        """NCCL does not say whom: all others."""
        return [rank for rank in range(self.owner.size) if rank != self.owner.index]


def why_not(xp: ModuleType) -> str:
    """Why this rank's device cannot be summed by NCCL; empty where it can.

    A communicator of this rank alone is made and used: a library that does not fit the driver fails here, where nobody
    waits for this rank, and not when all meet.
    """
    try:
        nccl = module_for(xp)
        alone = NcclAllReduce(xp, nccl, 0, 1, nccl.get_unique_id())
        one = xp.ones(1, "float32")
        reduction = alone.start(one)
        alone.stream.synchronize()
        reduction.advance()
        alone.abort()
    except Exception as error:  # cupy's own kinds, or whatever a library says that does not fit
        return f"{error}"
    return ""


def shared_id(group: Group, nccl: ModuleType) -> bytes | tuple[int, ...]:
    """Collective: the id that worker 0's NCCL has drawn, as cupy has it: bytes or, before its version 14, a tuple."""
    numbers = np.zeros(ID_NUMBERS + 1, np.int16)  # a tuple's are chars, which some machines have signed and some not
    if group.index == 0:
        drawn = nccl.get_unique_id()
        numbers[...] = [*drawn, isinstance(drawn, bytes)]
    group.broadcast([numbers])
    *found, are_bytes = numbers.tolist()
    return bytes(found) if are_bytes else tuple(found)


def module_for(xp: ModuleType) -> ModuleType:
    """cupy's module for NCCL; EnvironmentProblem where cupy has found no NCCL."""
    nccl = getattr(getattr(xp, "cuda", None), "nccl", None) or _imported(xp)
    if nccl is None or not hasattr(nccl, "NcclCommunicator"):
        raise EnvironmentProblem("cupy finds no NCCL (pip install nvidia-nccl-cu12, or nvidia-nccl-cu13 for CUDA 13)")
    return nccl


def _imported(xp: ModuleType) -> ModuleType | None:
    """Since its version 14 cupy has the module only once it is imported; without the library it is there, but empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the error above says what is missing
        try:
            return importlib.import_module(f"{getattr(xp, '__name__', '')}.cuda.nccl")
        except (ImportError, TypeError):
            return None
