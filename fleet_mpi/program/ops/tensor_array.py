"""Tensor arrays: lists of tensors that a loop writes and reads by position. Such programs are interpreted."""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph.registry import Meta, op


def position(k):
    """The position in ``I``."""
    return int(arrays.to_host(k["I"]).reshape(-1)[0])


def tensor_at(values, where):
    """The tensor at a position of a list, or None."""
    found = values[where] if isinstance(values, list) and 0 <= where < len(values) else None
    return None if found is None or found.array is None else found


def put_at(values, where, tensor):
    """Put a tensor at a position of a list, which grows as far as needed."""
    values.extend(Tensor() for _ in range(where + 1 - len(values)))
    values[where] = tensor


def infer_like_x(k):
    """A gradient as X, with its LoD."""
    k.set("X@GRAD", k.shape("X"), lod=k.lod("X"))


def infer_list_like_x(k):
    """The gradient of a list."""
    k.set("X@GRAD", k.shape("X"), k.dtype("X"), kind="array")


@op("empty_array", "")
class EmptyArray:
    """A list without tensors, for a gradient to be added to."""

    def infer(k):
        k.set("Out", (), np.float32, kind="array")

    def run(k):
        """A new one at every run."""
        return lambda: k.put("Out", [], meta=Meta((), np.float32, kind="array"))


@op("write_to_array", "X I", "Out", dynamic=True)
class WriteToArray:
    """The array with a copy of X at position I; it grows as far as needed."""

    def infer(k):
        k.set("Out", k.shape("X"), kind="array")

    def run(k):
        """Copy: X's memory is used again by the next turn of a loop."""
        name = k.name("Out")

        def run():
            where, values = position(k), k.frame.values.get(name)
            if where < 0:
                k.fail(f"position {where} of {name!r} lies before the first")
            values = values if isinstance(values, list) else []
            put_at(values, where, Tensor(k["X"].copy(), k.lod("X")))
            k.put("Out", values, meta=Meta(k.shape("X"), k.dtype("X"), kind="array"))
        return run

    def make_grad(walk, op, grads):
        """What was added for the tensor at this position."""
        name = op.input("X")[0]
        part = walk.contribution(name)
        if part:
            made = walk.block.append_op("write_to_array_grad", {
                "X": [walk.value(op, name)], "I": [walk.value(op, op.input("I")[0])], "Out@GRAD": grads["Out"]},
                {"X@GRAD": [part]})
            walk.add(name, part, made)


@op("write_to_array_grad", "X I Out@GRAD", "X@GRAD")
class WriteToArrayGrad:
    """The gradient of the tensor that was written; of the one it replaced, none is known from here on."""

    infer = infer_like_x

    def run(k):
        """Take it out of the list."""
        def run():
            where, out = position(k), k["X@GRAD"]
            found = tensor_at(k["Out@GRAD"], where)
            k.xp.copyto(out, 0 if found is None else found.array)
            if found is not None:
                k["Out@GRAD"][where] = Tensor()
        return run


@op("read_from_array", "X I", dynamic=True)
class ReadFromArray:
    """A copy of the tensor at position I."""

    def infer(k):
        """As what was written last."""
        k.set("Out", k.shape("X"), k.dtype("X"), lod=())

    def run(k):
        def run():
            values, where = k["X"], position(k)
            found = tensor_at(values, where)
            if found is None:
                count = len(values) if isinstance(values, list) else 0
                k.fail(f"{k.name('X')!r} has no tensor at position {where}; it holds {count}")
            k.put("Out", found.array.copy(), meta=Meta(found.array.shape, found.array.dtype, found.lod_offsets))
        return run

    def make_grad(walk, op, grads):
        """Added to what is known of the tensor at this position."""
        name = op.input("X")[0]
        if name in walk.wanted:
            walk.block.append_op("read_from_array_grad",
                                 {"I": [walk.value(op, op.input("I")[0])], "Out@GRAD": grads["Out"]},
                                 {"X@GRAD": [walk.open_array(name)]})


@op("read_from_array_grad", "I Out@GRAD", "X@GRAD", dynamic=True)
class ReadFromArrayGrad:
    """The list of gradients with one more added at position I, in place."""

    def infer(k):
        k.set("X@GRAD", k.shape("Out@GRAD"), kind="array")

    def run(k):
        """Add to what is there, in arrays of its own."""
        def run():
            where, values = position(k), k["X@GRAD"]
            found, grad = tensor_at(values, where), k["Out@GRAD"]
            total = grad.copy() if found is None else found.array + grad
            put_at(values, where, Tensor(total, k.lod("Out@GRAD")))
        return run


@op("lod_array_length", "X", dynamic=True)
class ArrayLength:
    """How many tensors an array holds, int64 [1]."""

    def infer(k):
        k.set("Out", [1], np.int64, lod=())

    def run(k):
        def run():
            count = k.xp.asarray(np.array([len(k["X"])], np.int64))
            k.put("Out", count, meta=Meta([1], np.int64))
        return run
