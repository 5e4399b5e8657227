"""Ops over sequences of ids: windows of them, erasing some, adding numbers where they point."""

import numpy as np

from fleet_mpi.kernels.reference import sequence as kernels
from fleet_mpi.kernels.reference.rows import add_at
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence import forward_level, last_level, matrix, take_by


@op("sequence_enumerate", "X", attrs={"win_size": 1, "pad_value": 0})
class SequenceEnumerate:
    """Each id with those behind it, ``win_size`` in all; ``pad_value`` behind the sequence's end."""

    def infer(k):
        """[rows, win_size]."""
        shape = k.shape("X")
        if any(size not in (1, -1) for size in shape[1:]):
            k.fail(f"expected one id per row, shape [rows] or [rows, 1], got {list(shape)}")
        if k.concrete:
            last_level(k, "X")
        k.set("Out", (shape[0], k.attr("win_size")), lod=k.lod("X"))

    def run(k):
        """Windows of rows that are one id wide."""
        x, out, pad = matrix(k["X"]), k["Out"], k.attr("pad_value")
        out = out.reshape(*out.shape, 1)
        offsets, fill = lod_rows.offsets_array(last_level(k, "X"), k.xp), kernels.windows.pick(x)
        return lambda: fill(x, offsets, 0, pad, out)


@op("sequence_erase", "X", attrs={"tokens": []})
class SequenceErase:
    """The ids that are none of ``tokens``."""

    def infer(k):
        """As many rows as are left: known when the ids are."""
        shape, ids = k.shape("X"), k.known("X")
        if not k.concrete:
            return k.set("Out", (-1,) + shape[1:], lod=k.lod("X"))
        is_kept, level = _is_kept(k, ids), last_level(k, "X")
        before = np.concatenate([[0], np.cumsum(is_kept)])
        left = tuple(before[lod_rows.offsets_array(level)].tolist())
        k.set("Out", (left[-1],) + shape[1:], lod=k.lod("X")[:-1] + (left,))

    def run(k):
        rows = np.flatnonzero(_is_kept(k, k.known("X")))
        return take_by(matrix(k["X"]), rows, matrix(k["Out"]), k.xp)


def _is_kept(k, ids):
    return ~np.isin(ids.reshape(-1), np.array(k.attr("tokens"), ids.dtype))


@op("sequence_scatter", "X Ids Updates", grad_reads="Ids")
class SequenceScatter:
    """Out[i] = X[i] with each of sequence i's ``Updates`` added at the column that its ``Ids`` say."""

    def infer(k):
        if k.concrete and k.lod("Ids") != k.lod("Updates"):
            k.fail(f"Ids and Updates must have the same LoD, got {k.lod('Ids')} and {k.lod('Updates')}")
        if k.concrete and len(last_level(k, "Ids")) - 1 != k.shape("X")[0]:
            k.fail(f"expected a sequence of Ids for each of X's {k.shape('X')[0]} rows, "
                   f"got {len(last_level(k, 'Ids')) - 1}")
        k.set("Out", k.shape("X"))

    def run(k):
        """A copy, then one addition for each update, in order."""
        x, out, xp = k["X"], k["Out"], k.xp
        ids, updates = k["Ids"].reshape(-1), k["Updates"].reshape(-1)
        flat, starts = out.reshape(-1), _row_starts(last_level(k, "Ids"), x.shape[1], xp)
        check = id_check(k, x.shape[1], f"a row of variable {k.name('X')!r}")
        return lambda: (check(ids), xp.copyto(out, x), add_at(flat, starts + ids, updates))

    def grad(k):
        """X's is the output's; an update's is that of the place it was added to."""
        dout, dx, dupdates, xp = k["Out@GRAD"], k["X@GRAD"], k["Updates@GRAD"], k.xp
        ids, starts = k["Ids"].reshape(-1), _row_starts(forward_level(k, "Ids"), dout.shape[1], xp)

        def run():
            if dx is not None:
                xp.copyto(dx, dout)
            if dupdates is not None:
                dupdates[...] = dout.reshape(-1)[starts + ids].reshape(dupdates.shape)
        return run


def _row_starts(level, width, xp):
    """For each id the place of its row's first number."""
    lengths = lod_rows.lengths_of(level)
    return xp.asarray(np.repeat(np.arange(len(lengths)) * width, lengths))
