"""Sequences cut into steps, longest sequence first, and put together again: what DynamicRNN is made of.

A rank table says in which order the sequences of a batch go: at every step those that go on are the first ones. How
many steps there are depends on the batch, so programs with these ops are interpreted.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph import lod as lods
from fleet_mpi.program.graph.registry import Meta, op
from fleet_mpi.program.ops.sequence import NO_LOD
from fleet_mpi.program.ops.tensor_array import infer_like_x, infer_list_like_x, put_at, tensor_at


class RankTable:
    """The sequences of one LoD level from long to short; ``lod`` is what they are put together to."""

    def __init__(self, lod, level):
        self.lod, self.offsets = lod[:level + 1], lod[level]
        self.lengths = lod_rows.lengths_of(self.offsets)
        self.order = np.argsort(-self.lengths, kind="stable")

    @property
    def steps(self):
        """The length of the longest sequence."""
        return int(self.lengths.max(initial=0))

    def going_on(self, step):
        """How many sequences have an element at a step."""
        return int((self.lengths > step).sum())

    def elements(self, step):
        """The numbers, in the level, of the elements that a step has, in the order of the table."""
        chosen = self.order[:self.going_on(step)]
        return np.array(self.offsets, np.int64)[chosen] + step


def rows_of(elements, below):
    """(rows of some elements, the LoD they have together); ``below`` are the LoD levels within an element."""
    if not below:
        return elements, ()
    offsets = lod_rows.offsets_array(below[0])
    lengths = offsets[elements + 1] - offsets[elements]
    rows, inner = rows_of(lod_rows.runs(offsets[elements], lengths), below[1:])
    return rows, (lod_rows.level_of(lengths), *inner)


@op("lod_rank_table", "X", attrs={"level": 0}, dynamic=True)
class LodRankTable:
    """The order of the sequences of a LoD level."""

    def infer(k):
        k.set("Out", (), np.float32, (), kind="raw")

    def run(k):
        def run():
            lod, level = k.lod("X"), k.attr("level")
            if level >= len(lod):
                k.fail(f"X={k.name('X')!r} {NO_LOD}" if not lod else f"level {level} of {len(lod)} LoD level(s)")
            k.put("Out", RankTable(lod, level), meta=Meta((), np.float32, kind="raw"))
        return run


@op("max_sequence_len", "RankTable", dynamic=True)
class MaxSequenceLen:
    """The number of steps, int64 [1]."""

    def infer(k):
        k.set("Out", [1], np.int64, ())

    def run(k):
        def run():
            count = arrays.to_module(np.array([k["RankTable"].steps], np.int64), k.xp)
            k.put("Out", count, meta=Meta([1], np.int64))
        return run


@op("lod_tensor_to_array", "X RankTable", dynamic=True)
class LodTensorToArray:
    """A tensor for every step, with the elements of those sequences that have one."""

    def infer(k):
        """A list of tensors with the rows of a step."""
        k.set("Out", (-1,) + tuple(k.shape("X")[1:]), lod=(), kind="array")

    def run(k):
        def run():
            x, values = k["X"], []
            for rows, lod in steps_of(k["RankTable"], k.lod("X")):
                values.append(Tensor(x[k.xp.asarray(rows)], lod))
            k.put("Out", values, meta=Meta((-1,) + x.shape[1:], x.dtype, kind="array"))
        return run

    def make_grad(walk, op, grads):
        """The steps' gradients put together."""
        _append(walk, op, "lod_tensor_to_array_grad",
                {"X": [walk.value(op, op.input("X")[0])], "Out@GRAD": grads["Out"]})


def _append(walk, op, type, inputs):
    """Add a gradient op with the rank table among its inputs and the gradient of X as output."""
    name = op.input("X")[0]
    part = walk.contribution(name)
    if part:
        made = walk.block.append_op(type, {**inputs, "RankTable": op.input("RankTable")}, {"X@GRAD": [part]})
        walk.add(name, part, made)


def steps_of(table, lod):
    """(rows, LoD) of every step of a tensor with this LoD."""
    below = lod[len(table.lod):]
    return [rows_of(table.elements(step), below) for step in range(table.steps)]


@op("lod_tensor_to_array_grad", "X RankTable Out@GRAD", "X@GRAD", dynamic=True)
class LodTensorToArrayGrad:
    """The rows' gradients at their places in the tensor; zero where a step has none."""

    infer = infer_like_x

    def run(k):
        def run():
            total = k.xp.zeros(k.shape("X"), k.dtype("X"))
            for step, (rows, _) in enumerate(steps_of(k["RankTable"], k.lod("X"))):
                found = tensor_at(k["Out@GRAD"], step)
                if found is not None:
                    total[k.xp.asarray(rows)] = found.array
            k["Out@GRAD"].clear()
            k.put("X@GRAD", total, meta=Meta(total.shape, total.dtype, k.lod("X")))
        return run


@op("array_to_lod_tensor", "X RankTable", dynamic=True)
class ArrayToLodTensor:
    """The sequences put together from their steps, in the order they had."""

    def infer(k):
        """The rows of all steps; sequences as in the table, while it is built one level."""
        k.set("Out", (-1,) + tuple(k.shape("X")[1:]), k.dtype("X"), ((),), kind="dense")

    def run(k):
        """Concatenate, then take the rows in their order."""
        def run():
            values, table = _whole(k, k["X"]), k["RankTable"]
            order, lod = joined_order(table, values)
            joined = k.xp.concatenate([one.array for one in values])[k.xp.asarray(order)]
            k.put("Out", joined, meta=Meta(joined.shape, joined.dtype, lod))
        return run

    def make_grad(walk, op, grads):
        """The rows' gradients added to the steps'."""
        name = op.input("X")[0]
        if name in walk.wanted:
            walk.block.append_op("array_to_lod_tensor_grad", {
                "X": [name], "RankTable": op.input("RankTable"), "Out@GRAD": grads["Out"]},
                {"X@GRAD": [walk.open_array(name)]})


def _whole(k, values):
    """The tensors of the steps; each must have been written, with the elements of its step."""
    table = k["RankTable"]
    for step in range(table.steps):
        found, count = tensor_at(values, step), table.going_on(step)
        have = None if found is None else len(found.lod_offsets[0]) - 1 if found.lod_offsets else len(found.array)
        if have != count:
            k.fail(f"step {step} of {k.name('X')!r}: expected {count} elements, one for each sequence that goes on, "
                   f"got {have}")
    if not table.steps:
        k.fail(f"{k.name('X')!r}: no sequence has an element")
    return values[:table.steps]


def joined_order(table, values):
    """(for each row put together its place behind the steps' rows, the LoD of the whole)."""
    starts = np.cumsum([0] + [len(one.array) for one in values])
    pieces, lengths = {}, {}
    for step, one in enumerate(values):
        for place, element in enumerate(table.elements(step).tolist()):
            begin, end = (one.lod_offsets[0][place:place + 2] if one.lod_offsets else (place, place + 1))
            pieces[element] = np.arange(begin, end) + starts[step]
            lengths[element] = end - begin
    order = np.concatenate([pieces[element] for element in sorted(pieces)])
    inner = lods.from_lengths([[lengths[element] for element in sorted(lengths)]]) if values[0].lod_offsets else ()
    return order, table.lod + inner


@op("array_to_lod_tensor_grad", "X RankTable Out@GRAD", "X@GRAD", dynamic=True)
class ArrayToLodTensorGrad:
    """What flows to every step, added to the list of gradients in place."""

    infer = infer_list_like_x

    def run(k):
        """Cut, as the rows came together."""
        def run():
            values, total = k["X"][:k["RankTable"].steps], k["X@GRAD"]
            order, _ = joined_order(k["RankTable"], values)
            back = k["Out@GRAD"][k.xp.asarray(np.argsort(order))]
            start = 0
            for step, one in enumerate(values):
                add_at(total, step, back[start:start + len(one.array)], one.lod_offsets)
                start += len(one.array)
        return run


def add_at(values, where, grad, lod=()):
    """Add a gradient to the one at a position of a list."""
    found = tensor_at(values, where)
    put_at(values, where, Tensor(grad.copy() if found is None else found.array + grad, lod))


@op("shrink_rnn_memory", "X I RankTable", dynamic=True)
class ShrinkRnnMemory:
    """The sequences of X (its rows, where it has no LoD) of those that go on at step I: the first ones."""

    def infer(k):
        k.set("Out", (-1,) + tuple(k.shape("X")[1:]), lod=k.lod("X"))

    def run(k):
        def run():
            step = int(arrays.to_host(k["I"]).reshape(-1)[0])
            count, lod = first_sequences(k["RankTable"].going_on(step), k.lod("X"))
            kept = k["X"][:count].copy()
            k.put("Out", kept, meta=Meta(kept.shape, kept.dtype, lod))
        return run

    def make_grad(walk, op, grads):
        """Zero for the sequences that have ended."""
        _append(walk, op, "shrink_rnn_memory_grad", {"X": [walk.value(op, op.input("X")[0])], "Out@GRAD": grads["Out"]})


def first_sequences(count, lod):
    """(rows, LoD) of the first sequences of a tensor."""
    kept = []
    for level in lod:
        kept.append(level[:count + 1])
        count = level[count]
    return count, tuple(kept)


@op("shrink_rnn_memory_grad", "X RankTable Out@GRAD", "X@GRAD")
class ShrinkRnnMemoryGrad:
    """The gradient with rows of zeros behind it."""

    def infer(k):
        k.set("X@GRAD", k.shape("X"), lod=())

    def run(k):
        grad, out = k["Out@GRAD"], k["X@GRAD"]

        def run():
            out[len(grad):] = 0
            out[:len(grad)] = grad
        return run


@op("reorder_lod_tensor_by_rank", "X RankTable", dynamic=True)
class ReorderByRank:
    """The sequences of X (its rows, where it has no LoD) in the order of the table."""

    def infer(k):
        k.set("Out", k.shape("X"), lod=k.lod("X"))

    def run(k):
        def run():
            rows, lod = rows_of(k["RankTable"].order, k.lod("X"))
            _check_count(k)
            x = k["X"][k.xp.asarray(rows)]
            k.put("Out", x, meta=Meta(x.shape, x.dtype, lod))
        return run

    def make_grad(walk, op, grads):
        """Back in the order of X."""
        _append(walk, op, "reorder_lod_tensor_by_rank_grad",
                {"X": [walk.value(op, op.input("X")[0])], "Out@GRAD": grads["Out"]})


def _check_count(k):
    have = len(k.lod("X")[0]) - 1 if k.lod("X") else k.shape("X")[0]
    if have != len(k["RankTable"].order):
        k.fail(f"X={k.name('X')!r} has {have} sequences, the rank table {len(k['RankTable'].order)}")


@op("reorder_lod_tensor_by_rank_grad", "X RankTable Out@GRAD", "X@GRAD")
class ReorderByRankGrad:
    """The gradient in the order that X had."""

    infer = infer_like_x

    def run(k):
        rows, _ = rows_of(k["RankTable"].order, k.lod("X"))
        rows, grad, out = k.xp.asarray(rows), k["Out@GRAD"], k["X@GRAD"]

        def run():
            out[rows] = grad
        return run
