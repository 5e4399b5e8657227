"""Connectionist temporal classification: the cost of unaligned labels, and labels from the best class of each row."""

import numpy as np

from fleet_mpi.kernels.reference import ctc as kernels, rows as row_kernels
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence import forward_meta, last_level
from fleet_mpi.program.ops.sequence_spans import Spans, span_count


@op("warpctc", "Logits Label LogitsLength? LabelLength?", "WarpCTCGrad Loss",
    attrs={"blank": 0, "norm_by_times": False}, grad_reads="WarpCTCGrad LogitsLength",
    no_grad="Label LogitsLength LabelLength")
class WarpCtc:
    """Minus the log probability of each sequence's labels, whatever the rows that emit them.

    Padded logits are [rows, sequences, classes], padded labels [sequences, longest]. WarpCTCGrad keeps the gradient.
    """

    def infer(k):
        shape, padded = k.shape("Logits"), k.has("LogitsLength")
        if padded != k.has("LabelLength") or len(shape) != (3 if padded else 2):
            k.fail(f"expected Logits [rows, classes] and Label with LoDs, or Logits [rows, sequences, classes] with "
                   f"LogitsLength and LabelLength, got {list(shape)}")
        if not 0 <= k.attr("blank") < max(shape[-1], 1):
            k.fail(f"blank: expected one of the {shape[-1]} classes, got {k.attr('blank')}")
        k.set("WarpCTCGrad", shape)
        count = shape[1] if padded else span_count(k, "Logits", "LogitsLength")
        k.set("Loss", [count, 1], lod=())

    def run(k):
        logits, labels = k["Logits"].reshape(-1, k.shape("Logits")[-1]), k["Label"].reshape(-1)
        rows, spans = Rows(k, "Logits"), Spans(k, "Label", "LabelLength")
        if rows.count != spans.count:
            k.fail(f"expected labels for each of {rows.count} sequences of Logits, got {spans.count}")
        cost, dlogits, blank = k["Loss"].reshape(-1), k["WarpCTCGrad"].reshape(logits.shape), k.attr("blank")
        run, check = kernels.ctc_cost.pick(logits), spans.check(labels, logits.shape[1], "the classes")
        return lambda: (spans.find(), check(),
                        run(logits, labels, rows.starts, rows.stride, rows.lengths(), spans.begins, spans.ends, blank,
                            cost, dlogits))

    def grad(k):
        """What was kept, times each sequence's share; with norm_by_times over its length."""
        kept, dlogits, xp = k["WarpCTCGrad"], k["Logits@GRAD"], k.xp
        rows, dloss = Rows(k, "Logits", of_forward=True), k["Loss@GRAD"].reshape(-1)
        by_time = k.attr("norm_by_times")

        def run():
            shares = dloss / xp.maximum(rows.lengths(), 1).astype(dloss.dtype) if by_time else dloss
            xp.multiply(kept, rows.spread(shares), dlogits)
        return run


class Rows:
    """Where the rows of each sequence's logits are: ``starts``, ``stride`` and ``lengths()``."""

    def __init__(self, k, slot, of_forward=False):
        self.xp, self.k, self.is_padded = k.xp, k, k.has("LogitsLength")
        meta = forward_meta(k, slot) if of_forward else k.meta(slot)
        if self.is_padded:
            self.count = self.stride = meta.shape[1]
            self.starts, self.longest = k.xp.arange(self.count, dtype="int64"), meta.shape[0]
            self.given = k["LogitsLength"].reshape(-1)
        else:
            level = meta.lod[-1] if of_forward else last_level(k, slot)
            self.offsets, self.stride, self.count = lod_rows.offsets_array(level, k.xp), 1, len(level) - 1
            self.starts, self.level = self.offsets[:-1], level

    def lengths(self):
        """How many rows each sequence has, in this run."""
        if not self.is_padded:
            return self.offsets[1:] - self.starts
        if row_kernels.first_outside(self.given, self.longest + 1) != row_kernels.ALL_INSIDE:
            self.k.fail(f"LogitsLength goes beyond the {self.longest} rows of Logits")
        return self.given.astype("int64")

    def spread(self, values):
        """A value per sequence, shaped to be multiplied with all of its rows."""
        if self.is_padded:
            return values.reshape(1, -1, 1)
        numbers = np.repeat(np.arange(self.count), lod_rows.lengths_of(self.level))
        return values[self.xp.asarray(numbers)].reshape(-1, 1)


@op("ctc_align", "Input InputLength?", "Output OutputLength?",
    attrs={"blank": 0, "merge_repeated": True, "padding_value": 0})
class CtcAlign:
    """Ids without blanks, equal neighbours merged. By LoD as many as are left; padded with ``padding_value``.

    Where nothing at all is left, the original gives one -1 that belongs to no sequence; so does this.
    """

    def infer(k):
        """By LoD: known when the ids are."""
        shape = k.shape("Input")
        if k.has("InputLength"):
            k.set("Output", shape, lod=())
            return k.set("OutputLength", [shape[0], 1], k.dtype("Input"), lod=())
        ids = k.known("Input")
        if not k.concrete:
            return k.set("Output", [-1, 1], lod=k.lod("Input"))
        left, level = _left(k, ids.reshape(-1))
        k.set("Output", [max(len(left), 1), 1], lod=(level,))

    def run(k):
        if k.has("InputLength"):
            return _align_padded(k)
        given, out, xp = k["Input"].reshape(-1), k["Output"].reshape(-1), k.xp
        left, _ = _left(k, k.known("Input").reshape(-1))
        if not len(left):
            return lambda: out.fill(-1)
        places = xp.asarray(left)
        return lambda: xp.copyto(out, given[places])


def _left(k, ids):
    """(positions that are left, the level they make)."""
    level = last_level(k, "Input")
    kept = ids != k.attr("blank")
    if k.attr("merge_repeated"):
        is_same = np.append(False, ids[1:] == ids[:-1])
        is_same[[start for start in level if start < len(ids)]] = False
        kept &= ~is_same
    before = np.concatenate([[0], np.cumsum(kept)])
    return np.flatnonzero(kept), tuple(before[list(level)].tolist())


def _align_padded(k):
    ids, out, lengths, found, xp = k["Input"], k["Output"], k["InputLength"].reshape(-1, 1), k["OutputLength"], k.xp
    columns, pad = xp.arange(ids.shape[1], dtype="int64").reshape(1, -1), k.attr("padding_value")
    merges, blank = k.attr("merge_repeated"), k.attr("blank")

    def run():
        kept = (ids != blank) & (columns < lengths)
        if merges:
            kept[:, 1:] &= ids[:, 1:] != ids[:, :-1]
        order = xp.argsort(~kept * ids.shape[1] + columns, axis=1)
        count = kept.sum(axis=1).reshape(-1, 1)
        xp.copyto(out, xp.where(columns < count, xp.take_along_axis(ids, order, axis=1), pad))
        if found is not None:
            xp.copyto(found, count, casting="same_kind")
    return run
