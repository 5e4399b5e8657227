"""Ops that pick elements by position: slices, gather and scatter, one_hot, where."""

from functools import partial

import numpy as np

from fleet_mpi.kernels.reference import rows
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import Meta, op
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.manipulation import axis_of, product
from fleet_mpi.program.ops.variable_arguments import are_unknown, given_number, given_numbers

LIMITS = "StartsTensor? EndsTensor? StartsTensorList* EndsTensorList*"
STRIDES = "StridesTensor? StridesTensorList*"


def limits(k):
    """axes, starts, ends and strides of a slice; None where only the run will tell."""
    axes = k.attr("axes")
    starts = given_numbers(k, "starts", "StartsTensor", "StartsTensorList")
    ends = given_numbers(k, "ends", "EndsTensor", "EndsTensorList")
    strides = given_numbers(k, "strides", "StridesTensor", "StridesTensorList") or [1] * len(axes)
    if not len(axes) == len(starts) == len(ends) == len(strides):
        k.fail(f"axes {axes}, starts {starts}, ends {ends} and strides {strides} must be equally long")
    return axes, starts, ends, strides


def slice_index(k, shape):
    """The index that a slice means, in full for known sizes; clipped to them as Python's is."""
    index = [slice(None)] * len(shape)
    for axis, start, end, stride in zip(*limits(k)):
        if stride == 0:
            k.fail("a stride of 0 leads nowhere")
        index[axis_of(k, axis, len(shape))] = slice(start, _end(start, end, stride, k, shape, axis), stride)
    return tuple(index)


def _end(start, end, stride, k, shape, axis):
    """An end before the first element, when going backwards, is none at all."""
    return None if stride < 0 and shape[axis] >= 0 and end < -shape[axis] else end


def sliced_shape(k):
    """The sizes after slicing, and after dropping the dimensions in ``decrease_axis``."""
    shape = k.shape("Input")
    unknown = are_unknown(k, f"{LIMITS} {STRIDES}")
    out = []
    for size, part in zip(shape, slice_index(k, shape)):
        whole = part == slice(None)
        out.append(size if whole else -1 if size < 0 or unknown else len(range(*part.indices(size))))
    dropped = {axis_of(k, axis, len(shape)) for axis in k.attr("decrease_axis", ())}
    for axis in dropped:
        if out[axis] not in (1, -1):
            k.fail(f"dimension {axis} of {list(shape)} has {out[axis]} element(s) left, so it cannot be dropped: "
                   f"is the index inside the variable?")
    return [size for i, size in enumerate(out) if i not in dropped] or [1]


class Slice:
    """A part of a variable: from ``starts`` to ``ends`` along ``axes``, by ``strides``."""

    def infer(k):
        """The sizes of the part."""
        shape = sliced_shape(k)
        axes = {axis_of(k, axis, len(k.shape("Input"))) for axis in k.attr("axes")}
        k.set("Out", shape, k.dtype("Input"), lod=() if 0 in axes else None)

    def run(k):
        x, out, xp = k["Input"], k["Out"], k.xp
        part = x[slice_index(k, x.shape)]
        out = out.reshape(part.shape)
        return lambda: xp.copyto(out, part)

    def grad(k):
        dx, xp = k["Input@GRAD"], k.xp
        part = dx[slice_index(k, dx.shape)]
        dout = k["Out@GRAD"].reshape(part.shape)
        return lambda: (dx.fill(0), xp.copyto(part, dout))


LIMIT_ATTRS = {"axes": [], "starts": [], "ends": [], "infer_flags": [], "decrease_axis": []}
op("slice", "Input", attrs=LIMIT_ATTRS, given=LIMITS)(Slice)
op("strided_slice", "Input", attrs={**LIMIT_ATTRS, "strides": []}, given=f"{LIMITS} {STRIDES}")(Slice)


def gather_call(k, table, ids, out, what, padding_idx=rows.NO_PADDING):
    """The call that copies rows of a table by id."""
    gather = partial(rows.gather_rows.pick(table), table, ids, out, padding_idx)
    return id_check(k, table.shape[0], what).around(gather, ids)


def scatter_call(k, table, ids, values, what, padding_idx=rows.NO_PADDING):
    """The call that clears a table and adds rows to it by id, in order."""
    scatter = partial(rows.scatter_add_rows.pick(table), table, ids, values, padding_idx)
    add = id_check(k, table.shape[0], what).around(scatter, ids)
    return lambda: (table.fill(0), add())


@op("gather", "X Index", attrs={"axis": 0, "overwrite": True}, grad_reads="Index", given="Axis?")
class Gather:
    """The slices of X along ``axis`` at the positions in Index."""

    def infer(k):
        """As many slices as there are positions."""
        shape, index = list(k.shape("X")), k.shape("Index")
        if len(index) > 1 and (len(index) > 2 or index[1] != 1):
            k.fail(f"expected Index of shape [n] or [n, 1], got {list(index)}")
        if are_unknown(k, "Axis"):
            return k.set("Out", [-1] * len(shape), k.dtype("X"), lod=())
        axis = gather_axis(k, len(shape))
        k.set("Out", shape[:axis] + [index[0]] + shape[axis + 1:], k.dtype("X"), lod=())

    def run(k):
        """Rows by the row kernel; other dimensions by a copy of the part."""
        x, index, out, xp = k["X"], k["Index"].reshape(-1), k["Out"], k.xp
        axis = gather_axis(k, x.ndim)
        if axis == 0:
            return gather_call(k, x, index, out, f"variable {k.name('X')!r}")
        check = id_check(k, x.shape[axis], f"dimension {axis} of variable {k.name('X')!r}")
        return lambda: (check(index), xp.copyto(out, xp.take(x, index, axis=axis)))

    def grad(k):
        """Each position's gradient is added to where it came from."""
        dx, dout, index, xp = k["X@GRAD"], k["Out@GRAD"], k["Index"].reshape(-1), k.xp
        axis = gather_axis(k, dx.ndim)
        if axis == 0:
            return scatter_call(k, dx, index, dout, "the gradient")
        into, given = xp.moveaxis(dx, axis, 0), xp.moveaxis(dout, axis, 0)
        return lambda: (dx.fill(0), rows.add_at(into, index, given))


def gather_axis(k, rank):
    """The dimension along which slices are picked, an attribute or a variable."""
    return axis_of(k, given_number(k, "axis", "Axis"), rank)


@op("gather_nd", "X Index", grad_reads="X Index")
class GatherNd:
    """The parts of X at the positions that the last dimension of Index names."""

    def infer(k):
        """Index's shape without its last dimension, then what is left of X's."""
        shape, index = k.shape("X"), k.shape("Index")
        if not 0 < index[-1] <= len(shape):
            k.fail(f"the last dimension of Index {list(index)} must be between 1 and {len(shape)}, X's dimensions")
        k.set("Out", tuple(index[:-1]) + tuple(shape[index[-1]:]), k.dtype("X"), lod=())

    def run(k):
        """Rows of X folded to as many dimensions as Index names."""
        x, index = k["X"], k["Index"]
        line, table = folded(k, x, index)
        fold = fold_call(k, x.shape, index, line)
        gather = gather_call(k, table, line, k["Out"].reshape(line.shape + table.shape[1:]), "X")
        return lambda: (fold(), gather())

    def grad(k):
        """Each position's gradient is added to where it came from."""
        dx, index, dout = k["X@GRAD"], k["Index"], k["Out@GRAD"]
        line, table = folded(k, dx, index)
        fold = fold_call(k, dx.shape, index, line)
        scatter = scatter_call(k, table, line, dout.reshape(line.shape + table.shape[1:]), "the gradient")
        return lambda: (fold(), scatter())


def folded(k, x, index):
    """Memory for one number per position, and X as a table of which it is the row."""
    depth = index.shape[-1]
    line = k.scratch((product(index.shape[:-1]),), np.int64)
    return line, x.reshape((product(x.shape[:depth]),) + tuple(x.shape[depth:]))


def fold_call(k, shape, index, line):
    """The call that fills ``line`` with row numbers of the folded table; a position outside one dimension must not fall
    into the next row."""
    columns, xp = index.reshape(-1, index.shape[-1]), k.xp
    checks = [id_check(k, shape[j], f"dimension {j} of X") for j in range(index.shape[-1])]

    def fold():
        line.fill(0)
        for j, check in enumerate(checks):
            check(columns[:, j])
            xp.multiply(line, shape[j], line)
            xp.add(line, columns[:, j], line)
    return fold


@op("scatter", "X Ids Updates", attrs={"overwrite": True}, grad_reads="Ids Updates")
class Scatter:
    """X with the rows Ids replaced by Updates; with ``overwrite=False``, by their sums."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        """Copy, then write the rows."""
        x, updates, out, xp = k["X"], k["Updates"], k["Out"], k.xp
        ids = k["Ids"].reshape(-1)
        check = id_check(k, x.shape[0], f"variable {k.name('X')!r}")
        if k.attr("overwrite"):
            return lambda: (check(ids), xp.copyto(out, x), out.__setitem__(ids, updates))
        return lambda: (check(ids), xp.copyto(out, x), out.__setitem__(ids, 0),
                        rows.add_at(out, ids, updates))

    def grad(k):
        """X's rows that were replaced get none; the updates get their rows'."""
        dx, dupdates, dout, xp = k["X@GRAD"], k["Updates@GRAD"], k["Out@GRAD"], k.xp
        ids, calls = k["Ids"].reshape(-1), []
        if dx is not None:
            calls.append(lambda: (xp.copyto(dx, dout), dx.__setitem__(ids, 0)))
        if dupdates is not None:
            calls.append(gather_call(k, dout, ids, dupdates, "the gradient"))
        return lambda: [call() for call in calls]


ONE_HOT = {"depth": 1, "dtype": "float32", "allow_out_of_range": False}


class OneHot:
    """1 at the place that the id names, 0 elsewhere."""

    def infer(k):
        """``depth`` behind the ids' dimensions; the first form replaces a last dimension of 1."""
        shape = list(k.shape("X"))
        if k.op.type == "one_hot":
            if shape[-1:] != [1]:
                k.fail(f"expected X of shape [..., 1], got {shape}; one_hot_v2 takes any")
            shape.pop()
        depth = given_number(k, "depth", "depth_tensor")
        k.set("Out", shape + [-1 if depth is None else depth], as_dtype(k.attr("dtype")))

    def run(k):
        """Compare with the numbers from 0 up."""
        ids, out, xp = k["X"].reshape(-1, 1), k["Out"], k.xp
        depth = out.shape[-1]
        numbers, table = xp.arange(depth, dtype=ids.dtype), out.reshape(-1, depth)
        if k.attr("allow_out_of_range"):
            return lambda: xp.equal(ids, numbers, out=table)
        check = id_check(k, depth, f"variable {k.name('X')!r}")
        return lambda: (check(ids), xp.equal(ids, numbers, out=table))


op("one_hot", "X", attrs=ONE_HOT, given="depth_tensor?")(OneHot)
op("one_hot_v2", "X", attrs=ONE_HOT, given="depth_tensor?")(OneHot)


@op("shard_index", "X", attrs={"index_num": 1, "nshards": 1, "shard_id": 0, "ignore_value": -1})
class ShardIndex:
    """Ids of one shard counted from its start; those of other shards become ``ignore_value``."""

    def infer(k):
        if not 0 <= k.attr("shard_id") < k.attr("nshards"):
            k.fail(f"expected 0 <= shard_id < nshards, got {k.attr('shard_id')} and {k.attr('nshards')}")
        k.set("Out", k.shape("X"))

    def run(k):
        """Subtract the start, then cover what is outside."""
        x, out, xp = k["X"], k["Out"], k.xp
        size = -(-k.attr("index_num") // k.attr("nshards"))
        start, ignored = size * k.attr("shard_id"), k.attr("ignore_value")

        def run():
            xp.subtract(x, start, out)
            out[(x < start) | (x >= start + size)] = ignored
        return run


@op("where", "Condition X Y", grad_reads="Condition")
class Where:
    """X where the condition is true, Y elsewhere."""

    def infer(k):
        """All three have one shape."""
        shapes = [k.shape(slot) for slot in ("Condition", "X", "Y")]
        if any(len(shape) != len(shapes[0]) or any(a != b and -1 not in (a, b) for a, b in zip(shape, shapes[0]))
               for shape in shapes):
            k.fail(f"expected equal shapes of Condition, X and Y, got {[list(one) for one in shapes]}")
        k.set("Out", shapes[1], k.dtype("X"))

    def run(k):
        condition, x, y, out, copyto = k["Condition"], k["X"], k["Y"], k["Out"], k.xp.copyto
        return lambda: (copyto(out, y), copyto(out, x, where=condition))

    def grad(k):
        condition, dout, copyto, calls = k["Condition"], k["Out@GRAD"], k.xp.copyto, []
        dx, dy, invert = k["X@GRAD"], k["Y@GRAD"], k.xp.logical_not
        if dx is not None:
            calls.append(lambda: (dx.fill(0), copyto(dx, dout, where=condition)))
        if dy is not None:
            calls.append(lambda: (dy.fill(0), copyto(dy, dout, where=invert(condition))))
        return lambda: [call() for call in calls]


def put_found(k, slot, array):
    """Let an output whose shape depends on values be this array."""
    k.put(slot, array, meta=Meta(array.shape, array.dtype))


@op("where_index", "Condition", dynamic=True)
class WhereIndex:
    """The positions at which the condition is true, one a row, int64."""

    def infer(k):
        """How many is known when it runs."""
        k.set("Out", [-1, len(k.shape("Condition"))], np.int64, lod=())

    def run(k):
        condition, xp = k["Condition"], k.xp
        return lambda: put_found(k, "Out", xp.stack(xp.nonzero(condition), axis=1).astype("int64"))


@op("unique", "X", "Out Index? Count?", attrs={"dtype": "int64"}, dynamic=True)
class Unique:
    """The distinct elements in order of first occurrence, and for each element which one it is."""

    def infer(k):
        """How many is known when it runs."""
        k.set("Out", [-1], lod=())
        k.set("Index", k.shape("X"), as_dtype(k.attr("dtype")), lod=())
        k.set("Count", [-1], as_dtype(k.attr("dtype")), lod=())

    def run(k):
        """Sort by value, then back to first occurrence."""
        x, xp, dtype = k["X"].reshape(-1), k.xp, as_dtype(k.attr("dtype"))

        def run():
            values, first, index, count = xp.unique(x, return_index=True, return_inverse=True, return_counts=True)
            order = xp.argsort(first)
            put_found(k, "Out", values[order])
            put_found(k, "Index", xp.argsort(order)[index.reshape(-1)].astype(dtype))
            put_found(k, "Count", count[order].astype(dtype))
        return run
