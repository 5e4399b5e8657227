"""Metrics of decoded sequences: edit distance, and precision and recall of chunks."""

import numpy as np

from fleet_mpi.kernels.reference import sequence_metric as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence_spans import Spans, span_count

# The tags that mean begin, inside, end and single; -1 where a scheme has none.
SCHEMES = {"IOB": (0, 1, -1, -1), "IOE": (-1, 0, 1, -1), "IOBES": (0, 1, 2, 3), "plain": (-1, -1, -1, -1)}


@op("edit_distance", "Hyps Refs HypsLength? RefsLength?", "SequenceNum Out", attrs={"normalized": False})
class EditDistance:
    """Each sequence's edit distance from its reference; normalized, over the reference's length."""

    def infer(k):
        """One float32 per sequence, and how many there are."""
        if k.has("HypsLength") != k.has("RefsLength"):
            k.fail("padded sequences need both HypsLength and RefsLength")
        k.set("SequenceNum", [1], np.int64, lod=())
        k.set("Out", [span_count(k, "Hyps", "HypsLength"), 1], np.float32, lod=())

    def run(k):
        """One kernel, then the division."""
        spans = Spans(k, "Hyps", "HypsLength"), Spans(k, "Refs", "RefsLength")
        if spans[0].count != spans[1].count:
            k.fail(f"expected a reference for each of {spans[0].count} sequences, got {spans[1].count}")
        hyps, refs, out, xp = k["Hyps"].reshape(-1), k["Refs"].reshape(-1), k["Out"].reshape(-1), k.xp
        run, count, total = kernels.edit_distances.pick(hyps), k["SequenceNum"], spans[0].count

        def find():
            for one in spans:
                one.find()
            run(hyps, refs, spans[0].begins, spans[0].ends, spans[1].begins, spans[1].ends, out)
            count.fill(total)
            if k.attr("normalized"):
                xp.divide(out, _lengths(k, spans[1]), out)
        return find


def _lengths(k, refs):
    lengths = refs.ends - refs.begins
    empty = k.xp.flatnonzero(lengths == 0)
    if empty.size:
        k.fail(f"{empty.size} of the references are empty, so a distance cannot be divided by their lengths: "
               f"normalized=False, or leave them out")
    return lengths.astype("float32")


@op("chunk_eval", "Inference Label SeqLength?",
    "Precision Recall F1-Score NumInferChunks NumLabelChunks NumCorrectChunks",
    attrs={"num_chunk_types": 1, "chunk_scheme": "IOB", "excluded_chunk_types": []})
class ChunkEval:
    """How many chunks were inferred, labelled, and found as labelled; precision, recall and F1 of it."""

    def infer(k):
        if k.attr("chunk_scheme") not in SCHEMES:
            k.fail(f"chunk_scheme: expected one of {', '.join(SCHEMES)}, got {k.attr('chunk_scheme')!r}")
        for slot in ("Precision", "Recall", "F1-Score"):
            k.set(slot, [1], np.float32, lod=())
        for slot in ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"):
            k.set(slot, [1], np.int64, lod=())

    def run(k):
        """One kernel, then a few divisions."""
        spans, xp, scheme = Spans(k, "Label", "SeqLength"), k.xp, SCHEMES[k.attr("chunk_scheme")]
        inferred, labels, types = k["Inference"].reshape(-1), k["Label"].reshape(-1), k.attr("num_chunk_types")
        tags, highest = xp.asarray(np.array(scheme, np.int64)), types * max(sum(tag >= 0 for tag in scheme), 1)
        excluded = xp.asarray(np.isin(np.arange(types), k.attr("excluded_chunk_types")))
        counts, run = k.keep((3,), np.int64), kernels.count_chunks.pick(inferred)
        checks = [spans.check(line, highest + 1, what)
                  for line, what in ((inferred, "the inferred chunk labels"), (labels, "the chunk labels"))]

        def find():
            spans.find()
            for check in checks:
                check()
            run(inferred, labels, spans.begins, spans.ends, types, tags, excluded, counts)
            _scores(k, counts)
        return find


def _scores(k, counts):
    """Fill the outputs from the three counts; 0 where there is nothing to divide by."""
    xp, shares = k.xp, counts.astype("float32")
    for slot, i in (("NumInferChunks", 0), ("NumLabelChunks", 1), ("NumCorrectChunks", 2)):
        k[slot][...] = counts[i:i + 1]
    precision, recall = (shares[2:] / xp.maximum(shares[i:i + 1], 1.0) for i in (0, 1))
    k["Precision"][...], k["Recall"][...] = precision, recall
    k["F1-Score"][...] = 2 * precision * recall / xp.where(shares[2:] > 0, precision + recall, 1.0)
