"""The threads a rank computes with: how many, and a pool of them.

Work is cut into pieces whose number follows from shapes, never from the number of threads, and BLAS has
one thread, held to it from the first piece or product on: so the same bits come out on any number of
threads, and ranks that share cores do not fight (a product of 512 x 400 x 400 beside a busy neighbour,
median: 9 ms by threaded BLAS, 2 to 5 ms in pieces). Knows no ops.
"""

import functools
import itertools
import os
import threading
from queue import SimpleQueue

import numpy as np

from fleet_mpi import settings
from fleet_mpi.arrays import empty

_chosen = None  # set by set_threads; None: the settings decide
_blas_is_held = False


def threads():
    """How many threads ``for_each`` uses: FLEET_MPI_THREADS, or this rank's share of the cores it may run on."""
    return _chosen or settings.get("FLEET_MPI_THREADS") or _share_of_cores()


def _share_of_cores():
    """A rank that is bound has its share already; ranks that are free to run anywhere divide the machine."""
    # Only Linux tells which cores a process is bound to.
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(free, os.cpu_count() // ranks_here()))


@functools.cache  # asked for in every step, and mpirun's word does not change
def ranks_here():
    """How many ranks of this job the launcher started on this machine."""
    return max(1, settings.get("OMPI_COMM_WORLD_LOCAL_SIZE"), settings.get("MPI_LOCALNRANKS"),
               *settings.get("SLURM_STEP_TASKS_PER_NODE"))


def set_threads(count):
    """Compute with this many threads from now on; None lets the settings decide again."""
    global _chosen
    _chosen = count


def hold_blas():
    """Hold numpy's BLAS to one thread; call it before a product is bound. Costs nothing the second time."""
    global _blas_is_held
    if not _blas_is_held:
        from threadpoolctl import ThreadpoolController
        for library in ThreadpoolController().lib_controllers:
            if library.user_api == "blas":
                library.set_num_threads(1)
        _blas_is_held = True


def for_each(function, count):
    """Run ``function(i)`` for every i below ``count``, on several threads, this one among them.

    Returns when all are done. The order is open, so pieces must not depend on each other. The first
    error ends the rest and is raised here. Called from a piece, or while another thread's pieces hold
    the pool, it is a plain loop.
    """
    hold_blas()
    team = min(threads(), count)
    if team > 1 and not getattr(_here, "at_work", False) and _pool_lock.acquire(blocking=False):
        try:
            _pool(team - 1).run(function, count)
        finally:
            _pool_lock.release()
    else:
        for i in range(count):
            function(i)


def scratch(slot, shape, dtype):
    """An array of undefined values that only this thread uses, overwritten by its next call for ``slot``.

    One block of memory per thread and slot, as large as the largest asked for, serves all kernels.
    """
    dtype = np.dtype(dtype)
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    held = _here.__dict__.get(slot)
    if held is None or held.size < size:
        held = _here.__dict__[slot] = empty((size,), np.uint8)
    return held[:size].view(dtype).reshape(shape)


def pieces(count, size):
    """``count`` things cut into slices of ``size`` (the last may be shorter)."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


_here = threading.local()  # at_work: whether this thread runs a piece; slots of scratch
_pool_lock = threading.Lock()
_made = None


def _pool(helpers):
    global _made
    if _made is None or _made.helpers < helpers:
        if _made is not None:
            _made.close()
        _made = _Pool(helpers)
    return _made


class _Pool:
    """Threads that wait for jobs; the caller of ``run`` works beside them."""

    def __init__(self, helpers):
        self.helpers = helpers
        self.jobs = SimpleQueue()
        for i in range(helpers):
            threading.Thread(target=self._serve, name=f"fleet_mpi-compute-{i}", daemon=True).start()

    def run(self, function, count):
        job = _Job(function, count)
        helpers = min(threads(), count) - 1
        for _ in range(helpers):
            self.jobs.put(job)
        try:
            job.work()
        finally:
            for _ in range(helpers):
                job.left.get()
        if job.error is not None:
            raise job.error

    def close(self):
        for _ in range(self.helpers):
            self.jobs.put(None)

    def _serve(self):
        for job in iter(self.jobs.get, None):
            job.work()
            job.left.put(None)
            job = None  # an idle thread must not keep the arrays of its last job alive


class _Job:
    """One call of for_each: hands out the indices, keeps the first error."""

    def __init__(self, function, count):
        self.function = function
        self.count = count
        self.next = itertools.count().__next__  # atomic under the GIL
        self.left = SimpleQueue()
        self.error = None

    def work(self):
        function, following, count = self.function, self.next, self.count
        _here.at_work = True
        try:
            i = following()
            while i < count and self.error is None:
                function(i)
                i = following()
        except BaseException as error:
            self.error = error
        finally:
            _here.at_work = False


def _start_afresh():
    # Threads do not survive a fork, and a lock may have been held by one of them: a child makes its own.
    global _pool_lock, _made
    _pool_lock = threading.Lock()
    _made = None


os.register_at_fork(after_in_child=_start_afresh)
