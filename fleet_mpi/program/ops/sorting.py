"""Ops that order elements: argmax, argmin, argsort, the largest k."""

import numpy as np

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.manipulation import axis_of
from fleet_mpi.program.ops.variable_arguments import given_numbers


class Extreme:
    """The position of the largest (or smallest) element along ``axis``; the first of equal ones."""

    def infer(k):
        """One dimension less, unless ``keepdims``."""
        shape = list(k.shape("X"))
        if k.attr("flatten"):
            k.set("Out", [1] * len(shape) if k.attr("keepdims") else [1], as_dtype(k.attr("dtype")), lod=())
            return
        axis = axis_of(k, k.attr("axis"), len(shape))
        shape[axis:axis + 1] = [1] if k.attr("keepdims") else []
        k.set("Out", shape or [1], as_dtype(k.attr("dtype")), lod=() if axis == 0 else None)

    def run(k):
        """Positions are int64 first, whatever is asked for."""
        x, out, xp = k["X"], k["Out"], k.xp
        x = x.reshape(-1) if k.attr("flatten") else x
        axis = 0 if k.attr("flatten") else axis_of(k, k.attr("axis"), x.ndim)
        find = xp.argmax if k.op.type == "arg_max" else xp.argmin
        target = out.reshape(x.shape[:axis] + x.shape[axis + 1:])
        if out.dtype == np.int64:
            return lambda: find(x, axis=axis, out=target)
        return lambda: xp.copyto(target, find(x, axis=axis), casting="same_kind")


EXTREME = {"axis": -1, "keepdims": False, "flatten": False, "dtype": "int64"}
op("arg_max", "X", attrs=EXTREME)(Extreme)
op("arg_min", "X", attrs=EXTREME)(Extreme)


def order_of(xp, x, descending):
    """The positions that sort the last dimension; equal elements keep their order."""
    if not descending:
        return xp.argsort(x, axis=-1, kind="stable")
    backwards = xp.flip(x, axis=-1)
    return x.shape[-1] - 1 - xp.flip(xp.argsort(backwards, axis=-1, kind="stable"), axis=-1)


def last(k, array, axis):
    """A view with ``axis`` moved to the end."""
    return k.xp.moveaxis(array, axis, -1)


def sort_run(k, axis, descending, count=None):
    """Write the first ``count`` of the sorted elements and their positions."""
    xp = k.xp
    x, out, indices = (last(k, k[slot], axis) for slot in ("X", "Out", "Indices"))
    whole = count == 1 and x.shape[-1] > 0

    def run_one():
        first = (xp.argmax if descending else xp.argmin)(x, axis=-1).reshape(indices.shape)
        xp.copyto(indices, first)
        xp.copyto(out, xp.take_along_axis(x, first, axis=-1))

    def run():
        order = order_of(xp, x, descending)
        order = order if count is None else order[..., :count]
        xp.copyto(indices, order)
        xp.copyto(out, xp.take_along_axis(x, order, axis=-1))
    return run_one if whole else run


def sort_grad(k, axis):
    """The gradient goes back to where each element came from."""
    xp, dx, indices = k.xp, k["X@GRAD"], last(k, k["Indices"], axis)
    target, dout = last(k, dx, axis), last(k, k["Out@GRAD"], axis)
    return lambda: (dx.fill(0), xp.put_along_axis(target, indices, dout, axis=-1))


@op("argsort", "X", "Out Indices", attrs={"axis": -1, "descending": False}, grad_reads="Indices")
class ArgSort:
    """The elements sorted along ``axis``, and where they were."""

    def infer(k):
        axis_of(k, k.attr("axis"), len(k.shape("X")))
        k.set("Out", k.shape("X"))
        k.set("Indices", k.shape("X"), np.int64)

    def run(k):
        return sort_run(k, k.attr("axis"), k.attr("descending"))

    def grad(k):
        """Back to where each came from."""
        return sort_grad(k, k.attr("axis"))


def infer_top(k, axis):
    """``k`` elements along the axis."""
    shape = list(k.shape("X"))
    axis = axis_of(k, axis, len(shape))
    count = top_count(k)
    if -1 not in (shape[axis], count) and not 1 <= count <= shape[axis]:
        k.fail(f"k = {count}: dimension {axis} of X {shape} has {shape[axis]} elements")
    shape[axis] = count
    k.set("Out", shape)
    k.set("Indices", shape, np.int64)


def top_count(k):
    """``k``, an attribute or a variable."""
    return given_numbers(k, "none", "K", "none")[0] if k.has("K") else k.attr("k")


@op("top_k", "X K?", "Out Indices", attrs={"k": 1}, grad_reads="Indices")
class TopK:
    """The k largest elements of each row, largest first, and where they were."""

    def infer(k):
        infer_top(k, -1)

    def run(k):
        """Sort, or find the one."""
        return sort_run(k, -1, True, k.shape("Out")[-1])

    def grad(k):
        """Back to where each came from."""
        return sort_grad(k, -1)


@op("top_k_v2", "X K?", "Out Indices", attrs={"k": 1, "axis": -1, "largest": True, "sorted": True},
    grad_reads="Indices")
class TopKV2:
    """The k largest (or smallest) elements along ``axis``, and where they were; always sorted."""

    def infer(k):
        """k elements along the axis."""
        infer_top(k, k.attr("axis"))

    def run(k):
        """Sort, or find the one."""
        return sort_run(k, k.attr("axis"), k.attr("largest"), k.shape("Out")[k.attr("axis")])

    def grad(k):
        """Back to where each came from."""
        return sort_grad(k, k.attr("axis"))


@op("median", "X", "Out Indices", attrs={"axis": 0, "keepdim": False}, grad_reads="Indices")
class Median:
    """The middle element along ``axis``; of an even number, the mean of the middle two. Indices: where both were."""

    def infer(k):
        """Without the axis, or with 1 there."""
        shape = list(k.shape("X"))
        axis = axis_of(k, k.attr("axis"), len(shape))
        left = shape[:axis] + shape[axis + 1:]
        kept = shape[:axis] + [1] + shape[axis + 1:] if k.attr("keepdim") else left or [1]
        k.set("Out", kept, lod=() if axis == 0 else None)
        k.set("Indices", left + [2], np.int64, lod=())

    def run(k):
        """Sort, then the mean of the two in the middle, which of an odd number are the same."""
        x, indices, xp = last(k, k["X"], k.attr("axis")), k["Indices"], k.xp
        out, size = k["Out"].reshape(x.shape[:-1]), x.shape[-1]
        if not size:
            k.fail(f"no median of no elements, X {list(k.shape('X'))}")

        def run():
            order = order_of(xp, x, False)
            for i, place in enumerate(((size - 1) // 2, size // 2)):
                indices[..., i] = order[..., place]
            middle = xp.take_along_axis(x, indices, axis=-1)
            xp.multiply(middle[..., 0] + middle[..., 1], 0.5, out=out)
        return run

    def grad(k):
        """To the middle element, or half of it to each of the two."""
        dx, indices, xp = k["X@GRAD"], k["Indices"], k.xp
        target = last(k, dx, k.attr("axis"))
        dout, count = k["Out@GRAD"].reshape(target.shape[:-1] + (1,)), 2 - target.shape[-1] % 2
        return lambda: (dx.fill(0), xp.put_along_axis(target, indices[..., :count], dout / count, axis=-1))
