"""Ops that add to places, select by a mask, find distinct elements, draw classes, and mark the most alike places."""

from functools import partial

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.kernels.reference import random, rows
from fleet_mpi.program.engine.outside import Check, id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.drawing import drawn
from fleet_mpi.program.ops.indexing import (
    Unique,
    fold_call,
    folded,
    gather_call,
    put_found,
    scatter_call,
)
from fleet_mpi.program.ops.manipulation import axis_of, product


@op("scatter_nd_add", "X Index Updates", grad_reads="Index")
class ScatterNdAdd:
    """X with Updates added at the positions that the last dimension of Index names; equal positions add up."""

    def infer(k):
        shape, index, updates = k.shape("X"), k.shape("Index"), k.shape("Updates")
        if not 0 < index[-1] <= len(shape):
            k.fail(f"the last dimension of Index {list(index)} must be between 1 and {len(shape)}, X's dimensions")
        wanted = tuple(index[:-1]) + tuple(shape[index[-1]:])
        if len(updates) != len(wanted) or any(a != b and -1 not in (a, b) for a, b in zip(updates, wanted)):
            k.fail(f"expected Updates {list(wanted)} for X {list(shape)} and Index {list(index)}, got {list(updates)}")
        k.set("Out", shape, k.dtype("X"), lod=())

    def run(k):
        """Copy, then add rows of X folded to as many dimensions as Index names."""
        x, out, index, xp = k["X"], k["Out"], k["Index"], k.xp
        line, table = folded(k, out, index)
        fold, values = fold_call(k, x.shape, index, line), k["Updates"].reshape(line.shape + table.shape[1:])
        scatter = partial(rows.scatter_add_rows.pick(table), table, line, values, rows.NO_PADDING)
        add = id_check(k, table.shape[0], "X").around(scatter, line)
        return lambda: (fold(), xp.copyto(out, x), add())

    def grad(k):
        """X gets all of it, each update its position's."""
        dx, dupdates, dout, index, xp = k["X@GRAD"], k["Updates@GRAD"], k["Out@GRAD"], k["Index"], k.xp
        calls = [] if dx is None else [lambda: xp.copyto(dx, dout)]
        if dupdates is not None:
            line, table = folded(k, dout, index)
            fold = fold_call(k, dout.shape, index, line)
            gather = gather_call(k, table, line, dupdates.reshape(line.shape + table.shape[1:]), "the gradient")
            calls.append(lambda: (fold(), gather()))
        return lambda: [call() for call in calls]


@op("index_sample", "X Index", grad_reads="Index")
class IndexSample:
    """From each row of X the elements at the positions in the same row of Index."""

    def infer(k):
        x, index = k.shape("X"), k.shape("Index")
        if len(x) != 2 or len(index) != 2 or x[0] != index[0] and -1 not in (x[0], index[0]):
            k.fail(f"expected X [rows, columns] and Index [rows, samples], got {list(x)} and {list(index)}")
        k.set("Out", index, k.dtype("X"), lod=k.lod("X"))

    def run(k):
        """Elements of X as a table of one column."""
        x, out, (line, fill) = k["X"], k["Out"], element_numbers(k, k.shape("X"))
        gather = gather_call(k, x.reshape(-1, 1), line, out.reshape(-1, 1), "X")
        return lambda: (fill(), gather())

    def grad(k):
        """Added to where each came from."""
        dx, dout, (line, fill) = k["X@GRAD"], k["Out@GRAD"], element_numbers(k, k.shape("X@GRAD"))
        scatter = scatter_call(k, dx.reshape(-1, 1), line, dout.reshape(-1, 1), "the gradient")
        return lambda: (fill(), scatter())


def element_numbers(k, shape):
    """Memory for the number of each chosen element, counted through all rows, and the call that fills it."""
    index, xp, width = k["Index"], k.xp, shape[1]
    line, given = k.scratch((product(index.shape),), np.int64), index.reshape(-1)
    starts = xp.arange(shape[0], dtype="int64").reshape(-1, 1) * width
    numbers = line.reshape(index.shape)
    check = Check(k, width, lambda wrong, position: (
        f"Index has {wrong} at position {position}: expected numbers of X's columns, 0 to {width - 1}"))
    return line, lambda: (check(given), xp.add(index, starts, out=numbers))


@op("masked_select", "X Mask", "Y", grad_reads="Mask", dynamic=True)
class MaskedSelect:
    """The elements of X where the mask is true, in a row."""

    def infer(k):
        """How many is known when it runs."""
        if len(k.shape("X")) != len(k.shape("Mask")) or k.dtype("Mask").kind != "b":
            k.fail(f"expected a bool Mask of X's shape {list(k.shape('X'))}, got "
                   f"{k.dtype('Mask')}{list(k.shape('Mask'))}")
        k.set("Y", [-1], k.dtype("X"), lod=())

    def run(k):
        x, mask = k["X"], k["Mask"]
        return lambda: put_found(k, "Y", x[mask])

    def grad(k):
        dx, dy, mask = k["X@GRAD"], k["Y@GRAD"], k["Mask"]
        return lambda: (dx.fill(0), dx.__setitem__(mask, dy))


@op("unique_sorted", "X", "Out Indices? Index? Counts?", attrs={"axis": None, "dtype": "int64"}, dynamic=True)
class UniqueSorted:
    """The distinct elements (or slices along ``axis``) in ascending order; where each is first, which each is, how
    many."""

    def infer(k):
        """How many is known when it runs."""
        shape, axis, dtype = list(k.shape("X")), k.attr("axis"), k.attr("dtype")
        if axis is None:
            shape = [-1]
        else:
            shape[axis_of(k, axis, len(shape))] = -1
        k.set("Out", shape, lod=())
        for slot in ("Indices", "Index", "Counts"):
            k.set(slot, [-1], dtype, lod=())

    def run(k):
        x, xp, axis, dtype = k["X"], k.xp, k.attr("axis"), k.attr("dtype")
        x = x.reshape(-1) if axis is None else x

        def run():
            found = xp.unique(x, return_index=True, return_inverse=True, return_counts=True,
                              axis=0 if axis is None else axis)
            put_found(k, "Out", found[0])
            for slot, value in zip(("Indices", "Index", "Counts"), found[1:]):
                if k.has(slot):
                    put_found(k, slot, value.reshape(-1).astype(dtype))
        return run


op("unique_with_counts", "X", "Out Index Count", attrs={"dtype": "int32"}, dynamic=True)(Unique)


@op("multinomial", "X", attrs={"num_samples": 1, "replacement": False, "seed": 0})
class Multinomial:
    """Classes drawn by probabilities, which need not sum to one; without replacement each class at most once."""

    def infer(k):
        """``num_samples`` a row, int64."""
        shape, count = k.shape("X"), k.attr("num_samples")
        if len(shape) not in (1, 2) or count < 1 or not k.attr("replacement") and shape[-1] != -1 and count > shape[-1]:
            k.fail(f"expected X [classes] or [rows, classes] and at most as many samples as classes unless they are "
                   f"replaced, got {list(shape)} and {count}")
        k.set("Out", tuple(shape[:-1]) + (count,), np.int64, lod=())

    def run(k):
        """By running sums of probabilities, or the earliest of exponential waiting times."""
        x, xp, count = k["X"].reshape(-1, k["X"].shape[-1]), k.xp, k.attr("num_samples")
        out = k["Out"].reshape(x.shape[0], count)
        width = count if k.attr("replacement") else x.shape[1]
        uniform = k.scratch((x.shape[0], width), "float32")
        draw = drawn(k, uniform, random.uniform, 0.0, 1.0)

        def with_replacement():
            sums = xp.cumsum(x.astype("float64"), axis=1)
            places = uniform.astype("float64") * sums[:, -1:]
            xp.copyto(out, xp.sum(sums[:, None, :] <= places[:, :, None], axis=2))

        def without():
            # A class of probability 0 waits for ever; the small number keeps log from a drawn 0.
            waits = -xp.log(uniform.astype("float64") + 1e-30) / xp.maximum(x.astype("float64"), 1e-300)
            xp.copyto(out, xp.argsort(waits, axis=1)[:, :count])
        pick = with_replacement if k.attr("replacement") else without
        return lambda: (draw(), pick())


@op("get_tensor_from_selected_rows", "X", dynamic=True)
class GetTensorFromSelectedRows:
    """The values of a row gradient as a tensor, one row for each id."""

    def infer(k):
        """How many is known when it runs."""
        k.set("Out", (-1,) + tuple(k.shape("X")[1:]), k.dtype("X"), lod=())

    def run(k):
        given = k["X"]
        if not isinstance(given, Rows):
            k.fail("expected a row gradient")
        return lambda: put_found(k, "Out", given.values.copy())


@op("similarity_focus", "X", attrs={"axis": 1, "indexes": []})
class SimilarityFocus:
    """1 at the places of the largest elements, no two in one row or column, of the slices ``indexes`` along
    ``axis``."""

    def infer(k):
        shape, axis, indexes = k.shape("X"), k.attr("axis"), k.attr("indexes")
        if len(shape) != 4 or axis not in (1, 2, 3) or not indexes:
            k.fail(f"expected X of 4 dimensions, axis 1, 2 or 3 and indexes, got {list(shape)}, {axis} and {indexes}")
        if any(not 0 <= one < shape[axis] for one in indexes if shape[axis] != -1):
            k.fail(f"indexes {indexes} lie outside dimension {axis} of X {list(shape)}")
        k.set("Out", shape)

    def run(k):
        """Take the largest, cover its row and column, and so on."""
        xp, axis, indexes = k.xp, k.attr("axis"), list(k.attr("indexes"))
        x, out = xp.moveaxis(k["X"], axis, 1), xp.moveaxis(k["Out"], axis, 1)

        def run():
            focus = 0
            for index in indexes:
                focus = xp.maximum(chosen_places(xp, x[:, index]), focus)
            xp.copyto(out, focus[:, None])
        return run


def chosen_places(xp, slices):
    """Ones at the chosen places of each matrix [N, A, B]."""
    left, focus = slices.copy(), xp.zeros(slices.shape, slices.dtype)
    count, height, width = slices.shape
    samples = xp.arange(count)
    for _ in range(min(height, width)):
        place = xp.argmax(left.reshape(count, product((height, width))), axis=1)
        row, column = place // width, place % width
        focus[samples, row, column] = 1
        left[samples, row, :] = float("-inf")
        left[samples, :, column] = float("-inf")
    return focus
