"""Tensor arrays: lists of tensors that a loop writes and reads by position. Such programs are interpreted."""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import NotBuilt
from fleet_mpi.program.registry import Meta, op
from fleet_mpi.program.scope import Tensor


def refuse_gradient(walk, op, grads):
    """Say that no gradient flows, instead of losing it."""
    raise NotBuilt(f"{op}: no gradient flows through a tensor array; use concat, stack or sequence layers "
                   f"for what is to be trained")


def position(k):
    """The position in ``I``."""
    return int(arrays.to_host(k["I"]).reshape(-1)[0])


@op("write_to_array", "X I", "Out", dynamic=True)
class WriteToArray:
    """The array with a copy of X at position I; it grows as far as needed."""

    def infer(k):
        """A list."""
        k.set("Out", k.shape("X"), kind="array")

    def run(k):
        """Copy: X's memory is used again by the next turn of a loop."""
        name = k.name("Out")

        def run():
            where, values = position(k), k.frame.values.get(name)
            if where < 0:
                k.fail(f"position {where} of {name!r} lies before the first")
            values = values if isinstance(values, list) else []
            values.extend(Tensor() for _ in range(where + 1 - len(values)))
            values[where] = Tensor(k["X"].copy(), k.lod("X"))
            k.put("Out", values, meta=Meta(k.shape("X"), k.dtype("X"), kind="array"))
        return run

    make_grad = refuse_gradient


@op("read_from_array", "X I", dynamic=True)
class ReadFromArray:
    """A copy of the tensor at position I."""

    def infer(k):
        """As what was written last."""
        k.set("Out", k.shape("X"), k.dtype("X"), lod=())

    def run(k):
        """Copy, with its LoD."""
        def run():
            values, where = k["X"], position(k)
            if not isinstance(values, list) or not 0 <= where < len(values) or values[where].array is None:
                count = len(values) if isinstance(values, list) else 0
                k.fail(f"{k.name('X')!r} has no tensor at position {where}; it holds {count}")
            found = values[where]
            k.put("Out", found.array.copy(), meta=Meta(found.array.shape, found.array.dtype, found.lod_offsets))
        return run

    make_grad = refuse_gradient


@op("lod_array_length", "X", dynamic=True)
class ArrayLength:
    """How many tensors an array holds, int64 [1]."""

    def infer(k):
        """One number."""
        k.set("Out", [1], np.int64, lod=())

    def run(k):
        """Count."""
        def run():
            count = k.xp.asarray(np.array([len(k["X"])], np.int64))
            k.put("Out", count, meta=Meta([1], np.int64))
        return run
