"""Rows (or sequences) parted by a mask, and put together again: what IfElse is made of.

How many rows a part has depends on the mask, so programs with these ops are interpreted.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import Meta, op
from fleet_mpi.program.ops.lod_rank import rows_of
from fleet_mpi.program.ops.tensor_array import infer_like_x


def mask_of(k):
    """The mask as a host array of bools."""
    return arrays.to_host(k["Mask"]).reshape(-1).astype(bool)


def parts(k, slot):
    """(rows, LoD) of what the mask chooses of a variable, and of the others."""
    mask, below = mask_of(k), k.lod(slot)[k.attr("level"):]
    have = len(below[0]) - 1 if below else k.shape(slot)[0]
    if have != len(mask):
        k.fail(f"the mask {k.name('Mask')!r} is for {len(mask)} rows or sequences, {k.name(slot)!r} has {have}")
    return [rows_of(np.flatnonzero(chosen), below) for chosen in (mask, ~mask)]


@op("split_lod_tensor", "X Mask", "OutTrue OutFalse", attrs={"level": 0}, dynamic=True)
class SplitLodTensor:
    """The rows, or sequences, where the mask holds, and the others."""

    def infer(k):
        for slot in ("OutTrue", "OutFalse"):
            k.set(slot, (-1,) + tuple(k.shape("X")[1:]), lod=k.lod("X"))

    def run(k):
        def run():
            x = k["X"]
            for slot, (rows, lod) in zip(("OutTrue", "OutFalse"), parts(k, "X")):
                found = x[k.xp.asarray(rows)]
                k.put(slot, found, meta=Meta(found.shape, found.dtype, lod))
        return run

    def make_grad(walk, op, grads):
        name = op.input("X")[0]
        part = walk.contribution(name)
        if part:
            given = {slot + "@GRAD": grads[slot] for slot in ("OutTrue", "OutFalse") if grads[slot][0]}
            made = walk.block.append_op("split_lod_tensor_grad", {
                "X": [walk.value(op, name)], "Mask": [walk.value(op, op.input("Mask")[0])], **given},
                {"X@GRAD": [part]}, {"level": op.attrs["level"]})
            walk.add(name, part, made)


@op("split_lod_tensor_grad", "X Mask OutTrue@GRAD? OutFalse@GRAD?", "X@GRAD", attrs={"level": 0})
class SplitLodTensorGrad:
    """Both parts' gradients at their rows; zero where a part has none."""

    infer = infer_like_x

    def run(k):
        out, pieces = k["X@GRAD"], [(k.xp.asarray(rows), k[slot]) for slot, (rows, _) in zip(
            ("OutTrue@GRAD", "OutFalse@GRAD"), parts(k, "X"))]

        def run():
            out.fill(0)
            for rows, grad in pieces:
                if grad is not None and len(grad):
                    out[rows] = grad
        return run


@op("merge_lod_tensor", "X Mask InTrue InFalse", attrs={"level": 0}, dynamic=True)
class MergeLodTensor:
    """A row, or sequence, of ``InTrue`` where the mask holds, else one of ``InFalse``, each in its order."""

    def infer(k):
        k.set("Out", (-1,) + tuple(k.shape("InTrue")[1:]), k.dtype("InTrue"), k.lod("InTrue"))

    def run(k):
        """Concatenate, then take by row; a part without rows may have any shape."""
        def run():
            order, lod = merged_order(k)
            some = [k[slot] for slot in ("InTrue", "InFalse") if len(k[slot])]
            made = k.xp.concatenate(some)[k.xp.asarray(order)] if some else k["InTrue"].copy()
            k.put("Out", made, meta=Meta(made.shape, made.dtype, lod))
        return run

    def make_grad(walk, op, grads):
        """The rows of each part."""
        names = [op.input(slot)[0] for slot in ("InTrue", "InFalse")]
        given = [walk.contribution(name) for name in names]
        if any(given):
            made = walk.block.append_op("merge_lod_tensor_grad", {
                "Mask": [walk.value(op, op.input("Mask")[0])], "Out@GRAD": grads["Out"],
                **{slot: [walk.value(op, name)] for slot, name in zip(("InTrue", "InFalse"), names)}},
                {slot: [grad] for slot, grad in zip(("InTrue@GRAD", "InFalse@GRAD"), given) if grad},
                {"level": op.attrs["level"]})
            for name, grad in zip(names, given):
                if grad:
                    walk.add(name, grad, made)


def merged_order(k):
    """(for each row its place behind one another of both parts, the LoD of the whole)."""
    mask = mask_of(k)
    lods = {slot: k.lod(slot) for slot in ("InTrue", "InFalse")}
    counts = [len(lods[slot][0]) - 1 if lods[slot] else k.shape(slot)[0] for slot in lods]
    if counts != [mask.sum(), (~mask).sum()]:
        k.fail(f"the mask has {mask.sum()} true and {(~mask).sum()} false, the parts {counts[0]} and {counts[1]} rows "
               f"or sequences")
    # The parts one behind the other, as one tensor; in it the element of each place of the mask.
    element = np.where(mask, np.cumsum(mask) - 1, counts[0] + np.cumsum(~mask) - 1)
    levels = [lod for lod in lods.values() if lod]
    if not levels:
        return element, ()
    lengths = np.concatenate([lod_rows.lengths_of(lod[0]) for lod in levels])
    return rows_of(element, (lod_rows.level_of(lengths),))


@op("merge_lod_tensor_grad", "Mask InTrue InFalse Out@GRAD", "InTrue@GRAD? InFalse@GRAD?", attrs={"level": 0})
class MergeLodTensorGrad:
    """What flows to the rows of each part."""

    def infer(k):
        for slot in ("InTrue", "InFalse"):
            k.set(slot + "@GRAD", k.shape(slot), k.dtype(slot), k.lod(slot))

    def run(k):
        """Back to their places one behind the other, then cut."""
        order, _ = merged_order(k)
        back, grad = k.xp.asarray(np.argsort(order)), k["Out@GRAD"]
        count, parts_back = k.shape("InTrue")[0], (k["InTrue@GRAD"], k["InFalse@GRAD"])

        def run():
            both = grad[back]
            for out, piece in zip(parts_back, (both[:count], both[count:])):
                if out is not None and len(piece):
                    k.xp.copyto(out, piece)
        return run
