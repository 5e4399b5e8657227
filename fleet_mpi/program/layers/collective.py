"""What workers compute together, for one worker: everything is its own.

Results are copies (``assign``), so that a script may go on using both variables. The ops of several workers are in
``runtime/ops/combining``.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers.tensor import assign

REDUCTIONS = ("sum", "prod", "max", "min")


def _allreduce(x, out=None, reduce_type="sum", sync_mode=False):
    """The workers' tensors combined."""
    return _combined(x, out, reduce_type)


def _c_allreduce(x, out=None, reduce_type="sum", ring_id=0, use_calc_stream=False):
    """The workers' tensors combined."""
    return _combined(x, out, reduce_type)


def _broadcast(x, root, sync_mode=False):
    """Worker ``root``'s tensor, in ``x`` itself."""
    _only(root, "root")
    return x


def _c_broadcast(x, root=0, ring_id=0, use_calc_stream=False):
    """Worker ``root``'s tensor, in ``x`` itself."""
    _only(root, "root")
    return x


def _c_allgather(x, nranks, ring_id=0, use_calc_stream=False):
    """The workers' tensors below each other."""
    _only(nranks - 1, "nranks - 1")
    return assign(x)


def _c_reducescatter(x, nranks, ring_id=0, use_calc_stream=False):
    """This worker's part of the sum of the workers' tensors."""
    _only(nranks - 1, "nranks - 1")
    return assign(x)


def _c_sync_calc_stream(x):
    """Nothing to wait for: ops run one after the other."""
    return x


def _c_sync_comm_stream(x, ring_id):
    """Nothing to wait for: ops run one after the other."""
    return x


def _combined(x, out, reduce_type):
    if reduce_type not in REDUCTIONS:
        raise UsageError(f"allreduce: expected one of {', '.join(REDUCTIONS)}, got {reduce_type!r}")
    return assign(x, out)


def _only(worker, what):
    if worker != 0:
        raise UsageError(f"one process has worker 0 only, got {what} = {worker}")
