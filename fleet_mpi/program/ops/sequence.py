"""One value per sequence (pooling), and softmax within each sequence.

Both work on the last LoD level; a pool's output keeps the outer ones. What offsets become is worked out
when the op is bound: a LoD belongs to the plan.
"""

import numpy as np

from fleet_mpi.errors import NotBuilt
from fleet_mpi.kernels.reference import sequence as kernels
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import FORWARD, op
from fleet_mpi.program.ops.matrix import rows_and_columns

NO_LOD = ("is not a sequence: it has no LoD. Declare the data it comes from with lod_level=1 and feed a LoD "
          "tensor (create_lod_tensor, or lists of lists through a DataFeeder)")


def last_level(k, slot):
    """The offsets of the innermost sequences of an input."""
    lod = k.lod(slot)
    if not lod:
        k.fail(f"{slot}={k.name(slot)!r} {NO_LOD}")
    return lod[-1]


def forward_meta(k, slot, index=0):
    """In a gradient: shape and LoD of a forward variable, whether or not its values are read."""
    return k.meta_of(k.attrs[FORWARD][slot][index])


def forward_level(k, slot):
    """In a gradient: the offsets of a forward variable's innermost sequences."""
    return forward_meta(k, slot).lod[-1]


def sequence_count(k, slot):
    """How many innermost sequences an input has; -1 while the program is built."""
    return len(last_level(k, slot)) - 1 if k.concrete else -1


def matrix(array, dims=1):
    """An array as a matrix, its first ``dims`` dimensions being the rows."""
    return array.reshape(rows_and_columns(array.shape, dims))


def take_by(x, rows, out, xp, pad=0):
    """The call that fills the matrix ``out`` with rows of the matrix ``x``; ``rows`` is a host array."""
    rows, take = xp.asarray(rows), kernels.take_rows.pick(x)
    return lambda: take(x, rows, pad, out)


def add_by(values, rows, out, xp):
    """The call that sums rows of ``values`` into those rows of ``out`` they came from."""
    rows, add = xp.asarray(rows), kernels.add_rows.pick(values)
    return lambda: add(values, rows, out)


@op("sequence_pool", "X", "Out MaxIndex?", attrs={"pooltype": "AVERAGE", "is_test": False, "pad_value": 0.0},
    grad_reads="MaxIndex")
class SequencePool:
    """Each sequence's sum, average, sum / sqrt(length), largest, first or last; ``pad_value`` for an empty one.

    ``MaxIndex`` tells for the largest which row of X it is from; other pools leave it without elements.
    """

    def infer(k):
        """A row per sequence; the outer levels stay."""
        kind, dtype = _kind(k), k.dtype("X")
        if kind in ("AVERAGE", "SQRT") and dtype.kind != "f":
            k.fail(f"pooltype {kind}: expected floats, got {dtype}: cast X first")
        shape, outer = (sequence_count(k, "X"),) + k.shape("X")[1:], k.lod("X")[:-1]
        k.set("Out", shape, lod=outer)
        k.set("MaxIndex", shape if kind == "MAX" else (0,), np.int32, lod=outer if kind == "MAX" else ())

    def run(k):
        """One pass over the rows."""
        return _POOLS[_kind(k)][0](k, matrix(k["X"]), matrix(k["Out"]), last_level(k, "X"))

    def grad(k):
        """Rows get their share; rows of no influence get zero."""
        return _POOLS[_kind(k)][1](k, matrix(k["Out@GRAD"]), matrix(k["X@GRAD"]), forward_level(k, "X"))


def _kind(k):
    kind = str(k.attr("pooltype")).upper()
    if kind not in _POOLS:
        k.fail(f"pooltype: expected one of {', '.join(sorted(_POOLS))}, got {kind!r}")
    return kind


def _pad_value(k, dtype):
    value = k.attr("pad_value")
    return float(value) if dtype.kind == "f" else int(value)


def _divisors(k, level, dtype):
    kind = _kind(k)
    if kind == "SUM":
        return k.xp.ones(len(level) - 1, dtype)
    # An empty sequence is padded, not divided: 1 keeps the reference, which divides all, from 0 / 0.
    lengths = np.maximum(lod_rows.lengths_of(level), 1)
    return k.xp.asarray((np.sqrt(lengths) if kind == "SQRT" else lengths).astype(dtype))


def _sum(k, x, out, level):
    offsets, divisors = lod_rows.offsets_array(level, k.xp), _divisors(k, level, x.dtype)
    pad, pool = _pad_value(k, x.dtype), kernels.pool_sum.pick(x)
    return lambda: pool(x, offsets, divisors, pad, out)


def _sum_grad(k, dout, dx, level):
    offsets, divisors = lod_rows.offsets_array(level, k.xp), _divisors(k, level, dx.dtype)
    spread = kernels.pool_sum_grad.pick(dout)
    return lambda: spread(dout, offsets, divisors, dx)


def _max(k, x, out, level):
    index = k["MaxIndex"] if k.has("MaxIndex") else k.scratch(out.shape, np.int32)
    index, offsets = matrix(index), lod_rows.offsets_array(level, k.xp)
    pad, pool = _pad_value(k, x.dtype), kernels.pool_max.pick(x)
    return lambda: pool(x, offsets, pad, out, index)


def _max_grad(k, dout, dx, level):
    if not k.has("MaxIndex"):
        raise NotBuilt(f"{k.op}: the gradient of the largest needs the op's output MaxIndex")
    index, offsets = matrix(k["MaxIndex"]), lod_rows.offsets_array(level, k.xp)
    spread = kernels.pool_max_grad.pick(dout)
    return lambda: spread(dout, index, offsets, dx)


def _row(rows_of):
    """Forward and gradient of a pool that picks one row."""
    def run(k, x, out, level):
        return take_by(x, rows_of(level), out, k.xp, _pad_value(k, x.dtype))

    def grad(k, dout, dx, level):
        return add_by(dout, rows_of(level), dx, k.xp)
    return run, grad


_POOLS = {"SUM": (_sum, _sum_grad), "AVERAGE": (_sum, _sum_grad), "SQRT": (_sum, _sum_grad),
          "MAX": (_max, _max_grad), "FIRST": _row(lod_rows.first_rows), "LAST": _row(lod_rows.last_rows)}


@op("sequence_softmax", "X", grad_reads="Out")
class SequenceSoftmax:
    """Softmax over the numbers of each sequence."""

    def infer(k):
        """As X, one number per row."""
        shape = k.shape("X")
        if any(size not in (1, -1) for size in shape[1:]):
            k.fail(f"expected one number per row, shape [rows] or [rows, 1], got {list(shape)}")
        if k.concrete:
            last_level(k, "X")
        k.set("Out", shape, lod=k.lod("X"))

    def run(k):
        x, out = k["X"].reshape(-1), k["Out"].reshape(-1)
        offsets, softmax = lod_rows.offsets_array(last_level(k, "X"), k.xp), kernels.softmax.pick(x)
        return lambda: softmax(x, offsets, out)

    def grad(k):
        """Out * (dOut - the sequence's sum of Out * dOut)."""
        out, dout, dx = (k[slot].reshape(-1) for slot in ("Out", "Out@GRAD", "X@GRAD"))
        offsets = lod_rows.offsets_array(forward_level(k, "X"), k.xp)
        backward = kernels.softmax_grad.pick(out)
        return lambda: backward(out, dout, offsets, dx)
