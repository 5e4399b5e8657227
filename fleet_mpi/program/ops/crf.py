"""Linear-chain conditional random fields over sequences of tags: the cost of labels, and the best labels."""

import numpy as np

from fleet_mpi.kernels.reference import crf as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.loss import as_rows
from fleet_mpi.program.ops.sequence_spans import Spans, span_count


def _infer_fits(k):
    tags = k.shape("Emission")[-1]
    if k.shape("Transition") != (tags + 2, tags) and tags > 0:
        k.fail(f"expected Transition [{tags + 2}, {tags}] for {tags} tags, got {list(k.shape('Transition'))}")
    if len(k.shape("Emission")) != (3 if k.has("Length") else 2):
        k.fail("expected Emission [rows, tags] with a LoD, or [sequences, longest, tags] with Length, got "
               f"{list(k.shape('Emission'))}")


@op("linear_chain_crf", "Emission Transition Label Length?", "Alpha EmissionExps TransitionExps LogLikelihood",
    grad_reads="Label Length Alpha EmissionExps TransitionExps", no_grad="Label Length")
class LinearChainCrf:
    """Minus the log likelihood of each sequence's labels; the original calls this cost LogLikelihood."""

    def infer(k):
        _infer_fits(k)
        k.set("Alpha", k.shape("Emission"))
        k.set("EmissionExps", k.shape("Emission"))
        k.set("TransitionExps", k.shape("Transition"), lod=())
        k.set("LogLikelihood", [span_count(k, "Emission", "Length"), 1], lod=())

    def run(k):
        spans, emission, labels = Spans(k, "Emission", "Length"), as_rows(k["Emission"]), k["Label"].reshape(-1)
        kept = as_rows(k["Alpha"]), as_rows(k["EmissionExps"]), k["TransitionExps"]
        transition, cost = k["Transition"], k["LogLikelihood"].reshape(-1)
        run, check = kernels.crf_cost.pick(emission), spans.check(labels, emission.shape[1], "the tags")
        return lambda: (spans.find(), check(),
                        run(emission, transition, labels, spans.begins, spans.ends, *kept, cost))

    def grad(k):
        """One kernel, from the probabilities kept."""
        spans, alpha, labels = Spans(k, "Emission", "Length", True), as_rows(k["Alpha"]), k["Label"].reshape(-1)
        exps, dcost, scratch = as_rows(k["EmissionExps"]), k["LogLikelihood@GRAD"].reshape(-1), k.scratch(
            alpha.shape, alpha.dtype)
        demission, dtransition = (
            k[slot] if k.has(slot) else k.scratch(shape, alpha.dtype)
            for slot, shape in (("Emission@GRAD", alpha.shape), ("Transition@GRAD", k.shape("TransitionExps"))))
        transition, demission, run = k["TransitionExps"], as_rows(demission), kernels.crf_cost_grad.pick(alpha)
        return lambda: (spans.find(), run(exps, transition, alpha, labels, spans.begins, spans.ends, dcost, scratch,
                                          demission, dtransition))


@op("crf_decoding", "Emission Transition Label? Length?", "ViterbiPath")
class CrfDecoding:
    """Each sequence's best tags; with Label, 1 where they are the labels and 0 elsewhere."""

    def infer(k):
        """One whole number for each row."""
        _infer_fits(k)
        shape = k.shape("Emission")
        k.set("ViterbiPath", shape[:2] if k.has("Length") else (shape[0], 1), np.int64)

    def run(k):
        """One kernel, then the comparison."""
        spans, emission, path = Spans(k, "Emission", "Length"), as_rows(k["Emission"]), k["ViterbiPath"].reshape(-1)
        transition, run, xp = k["Transition"], kernels.crf_best_tags.pick(emission), k.xp
        labels = k["Label"].reshape(-1) if k.has("Label") else None

        def find():
            spans.find()
            run(emission, transition, spans.begins, spans.ends, path)
            if labels is not None:
                xp.copyto(path, labels == path)
        return find
