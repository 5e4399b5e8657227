"""NCCL's calls as cupy has them, by the ranks of a job: what comes out wrong, by name."""

import numpy as np

from fleet_mpi.collective import nccl_backend

LENGTH = 300_007  # elements: more than the emulation hands over at a time
TYPES = ("float16", "float32", "float64", "int32", "int64")


def wrong_calls(comm, xp):
    """Collective over ``comm``: the names of calls with wrong results; two communicators are used in turns."""
    nccl = nccl_backend.module_for(xp)
    ids = comm.bcast([nccl.get_unique_id() for _ in range(2)] if comm.rank == 0 else None)
    made = [nccl.NcclCommunicator(comm.size, one, comm.rank) for one in ids]
    stream, found = xp.cuda.Stream(non_blocking=True), []
    for number, (name, call) in enumerate(_calls(comm, xp, nccl).items()):
        communicator = made[number % 2]
        stream.wait_event(xp.cuda.get_current_stream().record())
        array, expected = call(communicator, stream.ptr)
        communicator.check_async_error()
        stream.synchronize()
        if not np.array_equal(xp.asnumpy(array), expected):
            found.append(name)
    for one in made:
        one.destroy()
    return found


def _calls(comm, xp, nccl):
    """By name: what begins a call, and returns where its result will be and what it must be. Small whole numbers: the
    order of sums does not matter.
    """
    calls = {f"allReduce of {name}": _all_reduce(comm, xp, nccl, name) for name in TYPES}
    for root in range(comm.size):
        calls[f"broadcast from {root}"] = _broadcast(comm, xp, nccl, root)
    calls["reduce"], calls["allGather"] = _reduce(comm, xp, nccl), _all_gather(comm, xp, nccl)
    return calls


def _part(rank, dtype):
    return (np.arange(LENGTH) % 100 + rank).astype(dtype)


def _all_reduce(comm, xp, nccl, dtype):
    kind = getattr(nccl, f"NCCL_{dtype.upper()}")
    expected = sum(_part(rank, dtype) for rank in range(comm.size))
    array = xp.asarray(_part(comm.rank, dtype))

    def call(communicator, stream):
        communicator.allReduce(array.data.ptr, array.data.ptr, array.size, kind, nccl.NCCL_SUM, stream)
        return array, expected
    return call


def _broadcast(comm, xp, nccl, root):
    array = xp.asarray(_part(comm.rank, "float32"))

    def call(communicator, stream):
        communicator.bcast(array.data.ptr, array.size, nccl.NCCL_FLOAT32, root, stream)
        return array, _part(root, "float32")
    return call


def _reduce(comm, xp, nccl):
    """To the last rank; the others keep what they have."""
    array, total = xp.asarray(_part(comm.rank, "float32")), xp.zeros(LENGTH, "float32")

    def call(communicator, stream):
        last = comm.size - 1
        communicator.reduce(array.data.ptr, total.data.ptr, LENGTH, nccl.NCCL_FLOAT32, nccl.NCCL_MAX, last, stream)
        return total, _part(last, "float32") if comm.rank == last else np.zeros(LENGTH, "float32")
    return call


def _all_gather(comm, xp, nccl):
    array, all_parts = xp.asarray(_part(comm.rank, "int32")), xp.zeros((comm.size, LENGTH), "int32")

    def call(communicator, stream):
        communicator.allGather(array.data.ptr, all_parts.data.ptr, LENGTH, nccl.NCCL_INT32, stream)
        return all_parts, np.stack([_part(rank, "int32") for rank in range(comm.size)])
    return call
