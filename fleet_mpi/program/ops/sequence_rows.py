"""Sequences repeated, joined, turned round and cut: whole rows move, so the gradient moves them back."""

import numpy as np

from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.lod import row_offsets
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence import add_by, forward_level, forward_meta, last_level, matrix, take_by


@op("sequence_expand", "X Y", attrs={"ref_level": -1}, no_grad="Y")
class SequenceExpand:
    """Each sequence of X (each row, where X has no LoD) as often as level ``ref_level`` of Y says."""

    def infer(k):
        """As many rows as all repeats have; one level where X's sequences were repeated, else none."""
        x = k.shape("X")
        if not k.concrete:
            return k.set("Out", (-1,) + x[1:], lod=k.lod("X")[:1])
        counts = _counts(k, k.lod("Y"))
        level = _repeated_level(k, k.meta("X"), len(counts))
        if level is None:
            return k.set("Out", (int(counts.sum()),) + x[1:], lod=())
        out = lod_rows.level_of(np.repeat(lod_rows.lengths_of(level), counts))
        k.set("Out", (out[-1],) + x[1:], lod=(out,))

    def run(k):
        rows = _expanded_rows(k, k.meta("X"), k.lod("Y"))
        return take_by(matrix(k["X"]), rows, matrix(k["Out"]), k.xp)

    def grad(k):
        """A row gets the sum over its repeats."""
        rows = _expanded_rows(k, forward_meta(k, "X"), forward_meta(k, "Y").lod)
        return add_by(matrix(k["Out@GRAD"]), rows, matrix(k["X@GRAD"]), k.xp)


def _expanded_rows(k, x, y_lod):
    counts = _counts(k, y_lod)
    level = _repeated_level(k, x, len(counts))
    return np.repeat(np.arange(x.shape[0]), counts) if level is None else lod_rows.repeated_rows(level, counts)


def _counts(k, y_lod):
    """How often each sequence or row is repeated."""
    level = k.attr("ref_level")
    if not -1 <= level < len(y_lod) or not y_lod:
        k.fail(f"ref_level {level}: Y has {len(y_lod)} LoD level(s)")
    return lod_rows.lengths_of(y_lod[level])


def _repeated_level(k, x, count):
    """The level of X, counted in rows, whose ``count`` sequences are repeated; None where it is the rows."""
    if len(x.lod) == 1 and len(x.lod[0]) == count + 1:
        return x.lod[0]
    # The original refuses X of several levels. A decoder's state has them here, from the ids it was made
    # with, and means its rows.
    if x.shape[0] == count:
        return None
    for depth, level in enumerate(x.lod):
        if len(level) == count + 1:
            return row_offsets(x.lod, depth)
    k.fail(f"Y's level has {count} sequences, so X must have as many sequences or rows; "
           f"X has {x.shape[0]} rows" + "".join(f", {len(level) - 1} sequences" for level in x.lod))


@op("sequence_expand_as", "X Y", no_grad="Y")
class SequenceExpandAs:
    """Row i of X as often as Y's sequence i has rows; Out is ragged as Y is."""

    def infer(k):
        """As many rows as Y."""
        x, y = k.shape("X"), k.shape("Y")
        if k.concrete and x[0] != len(last_level(k, "Y")) - 1:
            k.fail(f"expected a row of X for each of Y's {len(last_level(k, 'Y')) - 1} sequences, got {x[0]} rows")
        k.set("Out", y[:1] + x[1:], lod=k.lod("Y"))

    def run(k):
        x, counts = k["X"], lod_rows.lengths_of(last_level(k, "Y"))
        return take_by(matrix(x), np.repeat(np.arange(x.shape[0]), counts), matrix(k["Out"]), k.xp)

    def grad(k):
        """A row gets the sum over its repeats."""
        dx, counts = k["X@GRAD"], lod_rows.lengths_of(forward_level(k, "Y"))
        return add_by(matrix(k["Out@GRAD"]), np.repeat(np.arange(dx.shape[0]), counts), matrix(dx), k.xp)


@op("sequence_concat", "X*")
class SequenceConcat:
    """The i-th sequences of all inputs, one behind the other."""

    def infer(k):
        """Rows and lengths add up."""
        rest, outer = k.shape("X")[1:], k.lod("X")[:-1]
        if not k.concrete:
            return k.set("Out", (-1,) + rest, lod=k.lod("X"))
        levels = [k.lod("X", i)[-1] for i in range(k.count("X")) if k.lod("X", i)]
        if len(levels) < k.count("X") or len({len(level) for level in levels}) > 1:
            k.fail(f"expected inputs with LoD and equally many sequences, got "
                   f"{[len(level) - 1 for level in levels]} sequences of {k.count('X')} inputs")
        level = lod_rows.joined_rows(levels)[1]
        k.set("Out", (level[-1],) + rest, lod=outer + (level,))

    def run(k):
        """Put each input's rows in their places."""
        out, xp = k["Out"], k.xp
        places, _ = lod_rows.joined_rows([k.lod("X", i)[-1] for i in range(k.count("X"))])
        pairs = [(xp.asarray(place), x) for place, x in zip(places, k.all("X"))]

        def run():
            for place, x in pairs:
                out[place] = x
        return run

    def grad(k):
        """Fetch each input's rows from their places."""
        dout, grads = matrix(k["Out@GRAD"]), k.all("X@GRAD")
        places, _ = lod_rows.joined_rows([forward_meta(k, "X", i).lod[-1] for i in range(len(grads))])
        calls = [take_by(dout, place, matrix(dx), k.xp) for place, dx in zip(places, grads) if dx is not None]

        def run():
            for call in calls:
                call()
        return run


@op("sequence_reverse", "X", "Y")
class SequenceReverse:
    """Each sequence from last row to first."""

    def infer(k):
        if k.concrete:
            last_level(k, "X")
        k.set("Y", k.shape("X"), lod=k.lod("X"))

    def run(k):
        return take_by(matrix(k["X"]), lod_rows.reversed_rows(last_level(k, "X")), matrix(k["Y"]), k.xp)

    def grad(k):
        rows = lod_rows.reversed_rows(forward_level(k, "X"))
        return take_by(matrix(k["Y@GRAD"]), rows, matrix(k["X@GRAD"]), k.xp)


@op("sequence_slice", "X Offset Length", grad_reads="Offset Length")
class SequenceSlice:
    """Of sequence i the ``Length[i]`` rows from ``Offset[i]`` on."""

    def infer(k):
        """As many rows as all lengths together; known when the lengths are."""
        rest = k.shape("X")[1:]
        offset, length = k.known("Offset"), k.known("Length")
        if not k.concrete:
            return k.set("Out", (-1,) + rest, lod=k.lod("X"))
        whole = lod_rows.lengths_of(last_level(k, "X"))
        offset, length = offset.reshape(-1), length.reshape(-1)
        if len(offset) != len(whole) or len(length) != len(whole):
            k.fail(f"expected an offset and a length for each of {len(whole)} sequences, "
                   f"got {len(offset)} and {len(length)}")
        wrong = np.flatnonzero((offset < 0) | (length < 0) | (offset + length > whole))
        if len(wrong):
            i = int(wrong[0])
            k.fail(f"sequence {i} of {int(whole[i])} rows cannot give {int(length[i])} rows from {int(offset[i])} on")
        k.set("Out", (int(length.sum()),) + rest, lod=k.lod("X")[:-1] + (lod_rows.level_of(length),))

    def run(k):
        return take_by(matrix(k["X"]), _cut_rows(k, last_level(k, "X")), matrix(k["Out"]), k.xp)

    def grad(k):
        """Zero outside of the slices."""
        return add_by(matrix(k["Out@GRAD"]), _cut_rows(k, forward_level(k, "X")), matrix(k["X@GRAD"]), k.xp)


def _cut_rows(k, level):
    starts = lod_rows.offsets_array(level)[:-1] + k.known("Offset").reshape(-1)
    return lod_rows.runs(starts, k.known("Length").reshape(-1))
