"""``fluid.layers.collective`` among several workers: ops by which a program combines their values itself.

Each happens at once, over the job's own communicator, in worker order. They have no gradient: what a script averages
by hand are gradients or metrics. One process alone uses ``program/layers/collective.py``.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.layers import collective as alone
from fleet_mpi.ranks import cluster

_PRODUCT = "prod"  # the one that the job's all_reduce does not know


@op("allreduce", "X", "Out", attrs={"reduce_type": "sum"}, effect=True)
class AllReduce:
    """The workers' values combined: sum, prod, max or min."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        job, kind = workers(k), k.attr("reduce_type", "sum")
        if kind == _PRODUCT:
            return computing(k, lambda host: np.prod(job.all_gather(host), axis=0, dtype=host.dtype))
        return computing(k, lambda host: job.all_reduce(host, kind))


@op("broadcast", "X", "Out", attrs={"root": 0}, effect=True)
class Broadcast:
    """One worker's values."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        """At once; meant for what is small."""
        job, root = workers(k), k.attr("root", 0)
        if not 0 <= root < len(job.workers):
            k.fail(f"root: there are {len(job.workers)} workers, got {root}")
        return computing(k, lambda host: job.all_gather(host)[root])


@op("c_allgather", "X", "Out", attrs={"nranks": 1}, effect=True)
class AllGather:
    """The workers' values below each other."""

    def infer(k):
        """As many times the rows."""
        rows, *rest = k.shape("X")
        k.set("Out", [rows if rows < 0 else rows * k.attr("nranks"), *rest], lod=())

    def run(k):
        job = workers(k, k.attr("nranks"))
        return computing(k, lambda host: np.concatenate(job.all_gather(host)))


@op("c_reducescatter", "X", "Out", attrs={"nranks": 1}, effect=True)
class ReduceScatter:
    """The part of the sum that is this worker's, by its number."""

    def infer(k):
        """One of so many parts of the rows."""
        rows, *rest = k.shape("X")
        if rows > 0 and rows % k.attr("nranks"):
            k.fail(f"expected rows for {k.attr('nranks')} workers alike, got {rows}")
        k.set("Out", [rows if rows < 0 else rows // k.attr("nranks"), *rest], lod=())

    def run(k):
        job = workers(k, k.attr("nranks"))
        return computing(k, lambda host: np.split(job.all_reduce(host), len(job.workers))[job.index])


def workers(k, count=None):
    """The job this process has joined; ``count`` is what the script takes for its number of workers."""
    job = cluster.current()
    if job is None:
        k.fail("the workers do not know each other yet: call fleet.init(...) before the program runs")
    if count is not None and count != len(job.workers):
        k.fail(f"nranks: this job has {len(job.workers)} workers, got {count}")
    return job


def computing(k, combine):
    """What runs every step: X on the host, combined, into Out."""
    given, out = k["X"], k["Out"]

    def run():
        host = np.ascontiguousarray(arrays.to_host(given))
        out[...] = arrays.to_module(np.ascontiguousarray(combine(host)), arrays.module_of(out))
    return run


def _allreduce(x, out=None, reduce_type="sum", sync_mode=False):
    """The workers' tensors combined."""
    if _is_alone():
        return alone._allreduce(x, out, reduce_type, sync_mode)
    if reduce_type not in alone.REDUCTIONS:
        raise UsageError(f"allreduce: expected one of {', '.join(alone.REDUCTIONS)}, got {reduce_type!r}")
    return _added("allreduce", x, out, reduce_type=reduce_type)


def _c_allreduce(x, out=None, reduce_type="sum", ring_id=0, use_calc_stream=False):
    """The workers' tensors combined."""
    return _allreduce(x, out, reduce_type)


def _broadcast(x, root, sync_mode=False):
    """Worker ``root``'s tensor, in ``x`` itself."""
    return alone._broadcast(x, root) if _is_alone() else _added("broadcast", x, x, root=root)


def _c_broadcast(x, root=0, ring_id=0, use_calc_stream=False):
    """Worker ``root``'s tensor, in ``x`` itself."""
    return _broadcast(x, root)


def _c_allgather(x, nranks, ring_id=0, use_calc_stream=False):
    """The workers' tensors below each other."""
    return alone._c_allgather(x, nranks) if _is_alone() else _added("c_allgather", x, None, nranks=nranks)


def _c_reducescatter(x, nranks, ring_id=0, use_calc_stream=False):
    """This worker's part of the sum of the workers' tensors."""
    return alone._c_reducescatter(x, nranks) if _is_alone() else _added("c_reducescatter", x, None, nranks=nranks)


_c_sync_calc_stream, _c_sync_comm_stream = alone._c_sync_calc_stream, alone._c_sync_comm_stream


def _is_alone():
    return cluster.world().size == 1


def _added(type, x, out, **attrs):
    helper = LayerHelper(type)
    if out is None:
        out = helper.create_variable_for_type_inference(x.dtype, stop_gradient=True)
    helper.append_op(type, {"X": [x]}, {"Out": [out]}, attrs)
    return out
