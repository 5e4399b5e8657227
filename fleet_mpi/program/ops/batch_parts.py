"""Batches in another order (shuffle_batch), and parts of columns joined or summed (partial_concat, partial_sum)."""

import numpy as np

from fleet_mpi.kernels.reference import random
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.drawing import drawn
from fleet_mpi.program.ops.manipulation import product


@op("shuffle_batch", "X Seed?", "Out ShuffleIdx SeedOut?", attrs={"startup_seed": 0, "seed": 0},
    grad_reads="ShuffleIdx", no_grad="Seed")
class ShuffleBatch:
    """The rows (all dimensions but the last) in another order at every run; ShuffleIdx says which."""

    def infer(k):
        shape = k.shape("X")
        k.set("Out", shape, lod=k.lod("X"))
        k.set("ShuffleIdx", [-1 if -1 in shape[:-1] else product(shape[:-1])], np.int64, lod=())
        k.set("SeedOut", [1], np.int64, lod=())

    def run(k):
        """Copy by the order that sorts as many drawn words."""
        x, order, xp = k["X"], k["ShuffleIdx"], k.xp
        rows, out = x.reshape(-1, x.shape[-1]), k["Out"].reshape(-1, x.shape[-1])
        words = k.scratch(order.shape, "uint32")
        draw = drawn(k, words, random.random_bits)
        return lambda: (draw(), xp.copyto(order, xp.argsort(words, kind="stable")), xp.copyto(out, rows[order]))

    def grad(k):
        """Back to where they were."""
        dout, dx, order = k["Out@GRAD"], k["X@GRAD"], k["ShuffleIdx"]
        dout, dx = (one.reshape(-1, one.shape[-1]) for one in (dout, dx))

        def run():
            dx[order] = dout
        return run


ATTRS = {"start_index": 0, "length": -1}


def _columns(k, width):
    """The columns that are taken of each input, as a slice."""
    start, length = k.attr("start_index"), k.attr("length")
    start += width if start < 0 else 0
    end = width if length < 0 else start + length
    if not 0 <= start < end <= width:
        k.fail(f"start_index {k.attr('start_index')} and length {length} do not lie within the {width} columns")
    return slice(start, end)


def _taken(k):
    shapes = k.shapes("X")
    if any(len(shape) != 2 or shape != shapes[0] and -1 not in shape + shapes[0] for shape in shapes):
        k.fail(f"expected matrices of one shape, got {shapes}")
    part = _columns(k, shapes[0][1])
    return shapes[0][0], part.stop - part.start


@op("partial_concat", "X*", attrs=ATTRS)
class PartialConcat:
    """The same columns of each input, side by side."""

    def infer(k):
        """As many columns as are taken of all."""
        rows, taken = _taken(k)
        k.set("Out", [rows, taken * k.count("X")])

    def run(k):
        """One copy for each input."""
        inputs, out, xp = k.all("X"), k["Out"], k.xp
        part = _columns(k, inputs[0].shape[1])
        parts = [one[:, part] for one in inputs]
        return lambda: xp.copyto(out, xp.concatenate(parts, axis=1))

    def grad(k):
        """Each its own columns; zeros around them."""
        dout = k["Out@GRAD"]
        width = dout.shape[1] // k.count("X@GRAD")
        return _part_grads(k, [dout[:, i * width:(i + 1) * width] for i in range(k.count("X@GRAD"))])


@op("partial_sum", "X*", attrs=ATTRS)
class PartialSum:
    """The sum of the same columns of each input."""

    def infer(k):
        """As many columns as are taken."""
        k.set("Out", list(_taken(k)))

    def run(k):
        """One addition for each input."""
        inputs, out, xp = k.all("X"), k["Out"], k.xp
        part = _columns(k, inputs[0].shape[1])

        def run():
            xp.copyto(out, inputs[0][:, part])
            for one in inputs[1:]:
                xp.add(out, one[:, part], out)
        return run

    def grad(k):
        """The same for each; zeros around it."""
        return _part_grads(k, [k["Out@GRAD"]] * k.count("X@GRAD"))


def _part_grads(k, parts):
    xp, pairs = k.xp, [(dx, part) for dx, part in zip(k.all("X@GRAD"), parts) if dx is not None]
    part_of = _columns(k, pairs[0][0].shape[1])
    return lambda: [(dx.fill(0), xp.copyto(dx[:, part_of], part)) for dx, part in pairs]
