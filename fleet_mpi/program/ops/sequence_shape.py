"""Between ragged and rectangular: padding, masks, rows of another width, another LoD over the same rows."""

import numpy as np

from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.lod import from_offsets, problem
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.sequence import add_by, forward_level, forward_meta, last_level, matrix, take_by


@op("sequence_pad", "X PadValue", "Out Length", attrs={"padded_length": -1}, no_grad="PadValue")
class SequencePad:
    """Sequences as rows of equal length [sequences, length, ...], filled up with ``PadValue``; and their lengths."""

    def infer(k):
        """As long as the longest, unless ``padded_length`` says more."""
        rest, length = k.shape("X")[1:], k.attr("padded_length")
        if not k.concrete:
            k.set("Out", (-1, length) + rest, lod=())
            return k.set("Length", (-1,), np.int64, lod=())
        lengths = lod_rows.lengths_of(last_level(k, "X"))
        longest = int(lengths.max(initial=0))
        if 0 <= length < longest:
            k.fail(f"maxlen: expected at least {longest}, the longest sequence, got {length}")
        pad = k.shape("PadValue")
        if tuple(pad) not in ((1,), (), tuple(rest)):
            k.fail(f"PadValue: expected shape [1] or that of a row, {list(rest)}, got {list(pad)}")
        k.set("Out", (len(lengths), length if length >= 0 else longest) + rest, lod=())
        k.set("Length", (len(lengths),), np.int64, lod=())
        k.meta("Length").known = lengths

    def run(k):
        """Copy rows, then fill the rest."""
        out, xp, pad = matrix(k["Out"], 2), k.xp, k["PadValue"].reshape(-1)
        length, level = k["Length"], last_level(k, "X")
        rows = lod_rows.padded_rows(level, k.shape("Out")[1])
        lengths, copy = xp.asarray(lod_rows.lengths_of(level)), take_by(matrix(k["X"]), rows, out, xp)
        gaps = np.flatnonzero(rows < 0)
        gaps = xp.asarray(gaps) if len(gaps) else None

        def run():
            copy()
            xp.copyto(length, lengths)
            if gaps is not None:
                out[gaps] = pad
        return run

    def grad(k):
        """What went into the padded rows comes back."""
        dout, dx, level = k["Out@GRAD"], k["X@GRAD"], forward_level(k, "X")
        rows = _rows_in_rectangle(lod_rows.lengths_of(level), dout.shape[1])
        return take_by(matrix(dout, 2), rows, matrix(dx), k.xp)


def _rows_in_rectangle(lengths, longest):
    """Where the rows of ragged sequences lie in a rectangle of sequences of equal length."""
    return lod_rows.runs(np.arange(len(lengths)) * longest, lengths)


@op("sequence_unpad", "X Length", grad_reads="Length")
class SequenceUnpad:
    """The first ``Length[i]`` rows of X[i], as sequences."""

    def infer(k):
        """As many rows as all lengths together; known when the lengths are."""
        x, lengths = k.shape("X"), k.known("Length")
        if not k.concrete:
            return k.set("Out", (-1,) + x[2:], lod=((),))
        lengths = lengths.reshape(-1)
        if len(lengths) != x[0] or (lengths < 0).any() or (lengths > x[1]).any():
            k.fail(f"Length: expected {x[0]} lengths between 0 and {x[1]}, got {lengths.tolist()[:20]}")
        k.set("Out", (int(lengths.sum()),) + x[2:], lod=(lod_rows.level_of(lengths),))

    def run(k):
        x = k["X"]
        rows = _rows_in_rectangle(k.known("Length").reshape(-1), x.shape[1])
        return take_by(matrix(x, 2), rows, matrix(k["Out"]), k.xp)

    def grad(k):
        """Zero where the padding was."""
        dx = k["X@GRAD"]
        rows = _rows_in_rectangle(k.known("Length").reshape(-1), dx.shape[1])
        return add_by(matrix(k["Out@GRAD"]), rows, matrix(dx, 2), k.xp)


@op("sequence_mask", "X MaxLenTensor?", "Y", attrs={"maxlen": -1, "out_dtype": "int64"})
class SequenceMask:
    """Y[..., j] = 1 where j < X[...], else 0; ``maxlen`` long, or as long as the largest of X."""

    def infer(k):
        k.set("Y", k.shape("X") + (_mask_length(k),), as_dtype(k.attr("out_dtype")), lod=())

    def run(k):
        x, y, xp = k["X"], k["Y"], k.xp
        lengths, numbers = x.reshape(x.shape + (1,)), xp.arange(y.shape[-1], dtype=x.dtype)
        return lambda: xp.less(numbers, lengths, out=y)


def _mask_length(k):
    if k.has("MaxLenTensor"):
        given = k.known("MaxLenTensor")
        return -1 if given is None else int(given.reshape(-1)[0])
    if k.attr("maxlen") > 0:
        return k.attr("maxlen")
    lengths = k.known("X")
    return -1 if lengths is None else int(lengths.max(initial=0))


@op("sequence_reshape", "X", attrs={"new_dim": 1}, view={"Out": "X"}, grad_view={"X@GRAD": "Out@GRAD"})
class SequenceReshape:
    """Each sequence's numbers as rows of ``new_dim`` columns."""

    def infer(k):
        """More rows or fewer, and lengths accordingly."""
        (rows, width), new = k.shape("X"), k.attr("new_dim")
        if not k.concrete:
            return k.set("Out", (-1, new), lod=k.lod("X"))
        offsets = lod_rows.offsets_array(last_level(k, "X")) * width
        if (offsets % new).any():
            k.fail(f"new_dim {new} does not divide the {width} columns times the rows of every sequence "
                   f"(offsets {list(last_level(k, 'X'))[:20]})")
        k.set("Out", (rows * width // new, new), lod=k.lod("X")[:-1] + (tuple((offsets // new).tolist()),))

    def run(k):
        return k.view("Out", k["X"].reshape(k.shape("Out")))

    def grad(k):
        return k.view("X@GRAD", k["Out@GRAD"].reshape(forward_meta(k, "X").shape))


@op("lod_reset", "X Y?", attrs={"target_lod": [], "append": False}, no_grad="Y",
    view={"Out": "X"}, grad_view={"X@GRAD": "Out@GRAD"})
class LodReset:
    """X with another LoD: that of Y, else Y's values, else ``target_lod``.

    Values are one level, as offsets [0, 2, 5] or as lengths [2, 3]; what can be read as offsets is.
    With ``append`` the level is added below those that X has.
    """

    def infer(k):
        """As X, but for the LoD."""
        k.set("Out", k.shape("X"), lod=_new_lod(k))

    def run(k):
        return k.view("Out", k["X"])

    def grad(k):
        return k.view("X@GRAD", k["Out@GRAD"])


def _new_lod(k):
    if k.has("Y") and k.lod("Y"):
        lod = k.lod("Y")
    else:
        given = k.known("Y") if k.has("Y") else np.array(k.attr("target_lod"), np.int64)
        if given is None or not k.concrete:
            lod = ((),)
        else:
            lod = (_level_from(given.reshape(-1), k.shape("X")[0]),)
    lod = k.lod("X") + lod if k.attr("append") else lod
    wrong = problem(lod, k.shape("X")[0]) if k.concrete else None
    if wrong:
        k.fail(wrong)
    return lod


def _level_from(numbers, rows):
    """Offsets as they are; lengths added up."""
    is_offsets = len(numbers) and numbers[0] == 0 and numbers[-1] == rows and (np.diff(numbers) >= 0).all()
    if not is_offsets and numbers.sum() == rows and (numbers >= 0).all():
        return lod_rows.level_of(numbers)
    return from_offsets([numbers])[0]
