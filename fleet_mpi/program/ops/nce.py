"""Noise contrastive estimation: the labelled classes against a few that are drawn, instead of against all."""

import numpy as np

from fleet_mpi.kernels.reference import rows as row_kernels
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.class_rows import REMOTE, ROWS, infer_grads, input_grad_call, logits_call, weight_grad_call
from fleet_mpi.program.ops.class_sampling import PROBABILITIES, sampler_of

ATTRS = {"num_total_classes": 2, "num_neg_samples": 10, "sampler": 0, "seed": 0, "custom_neg_classes": [], **REMOTE}


def _true_count(shape):
    return shape[1] if len(shape) == 2 else 1


def _noise(k, ids, dtype):
    """A function that gives, for each sample, how often its class is drawn in a row's negatives."""
    sampler, count = sampler_of(k, k.attr("num_total_classes")), k.attr("num_neg_samples")
    return lambda: (sampler.chance(ids) * count).astype(dtype)


def _weights(k, dtype):
    """Each row's weight as a column; a plain 1 where none are given."""
    return k["SampleWeight"].reshape(-1, 1) if k.has("SampleWeight") else k.xp.ones((1, 1), dtype)


@op("nce", f"Input Label Weight Bias? SampleWeight? {PROBABILITIES}", f"Cost SampleLogits SampleLabels {ROWS}?",
    attrs=ATTRS, grad_reads=f"Input Label Weight SampleWeight CustomDistProbs CustomDistAlias CustomDistAliasProbs "
                            f"SampleLogits SampleLabels {ROWS}",
    no_grad="Label SampleWeight CustomDistProbs CustomDistAlias CustomDistAliasProbs", by_rows="Weight")
class Nce:
    """With o = sigmoid(x . w + b) and noise q: -log(o / (o + q)) for labels, -log(q / (o + q)) for drawn classes.

    SampleLogits keeps o, SampleLabels the classes: a row's labels, then those drawn.
    """

    def infer(k):
        batch, width, weight = *k.shape("Input"), k.shape("Weight")
        if weight[1] != width or weight[0] != k.attr("num_total_classes"):
            k.fail(f"expected Weight [{k.attr('num_total_classes')}, {width}] for the classes and the input, "
                   f"got {list(weight)}")
        negatives = len(k.attr("custom_neg_classes")) or k.attr("num_neg_samples")
        samples = _true_count(k.shape("Label")) + negatives
        k.set("Cost", [batch, 1], lod=())
        k.set("SampleLogits", [batch, samples], lod=())
        k.set("SampleLabels", [batch, samples], np.int64, lod=())
        k.set(ROWS, [batch, samples, width], lod=())

    def run(k):
        ids, shares, cost, xp = k["SampleLabels"], k["SampleLogits"], k["Cost"].reshape(-1), k.xp
        true, bias = _true_count(k.shape("Label")), k["Bias"]
        draw, noise, weights = _samples_call(k, ids, true), _noise(k, ids, shares.dtype), _weights(k, shares.dtype)
        logits = logits_call(k, k["Input"], k["Weight"], ids, shares)
        bias = None if bias is None else bias.reshape(-1)

        def run():
            draw()
            logits()
            made = shares if bias is None else shares + bias[ids]
            xp.copyto(shares, 1.0 / (1.0 + xp.exp(-made)))
            drawn_often = noise()
            chosen = xp.concatenate([shares[:, :true], drawn_often[:, true:]], axis=1)
            xp.sum(-xp.log(chosen / (shares + drawn_often)) * weights, axis=1, out=cost)
        return run

    infer_grad = infer_grads("Weight")

    def grad(k):
        """Of the logits first; then the input's, the rows' and the bias's."""
        ids, shares, dcost, xp = k["SampleLabels"], k["SampleLogits"], k["Cost@GRAD"].reshape(-1, 1), k.xp
        true = _true_count(k.shape("Label"))
        noise, weights = _noise(k, ids, shares.dtype), _weights(k, shares.dtype)
        dlogits = k.scratch(shares.shape, shares.dtype)

        def run():
            often = noise()
            of_labels = often / (shares + often) * (shares - 1.0)
            of_drawn = shares * (1.0 - shares) / (shares + often)
            made = xp.concatenate([of_labels[:, :true], of_drawn[:, true:]], axis=1)
            xp.multiply(made * weights, dcost, dlogits)
        return _with_gradients(k, run, dlogits, ids)


def _with_gradients(k, first, dlogits, ids):
    calls, dbias = [first], k["Bias@GRAD"]
    if k.has("Input@GRAD"):
        calls.append(input_grad_call(k, "Weight", dlogits, ids, k["Input@GRAD"]))
    if k.has("Weight@GRAD"):
        calls.append(weight_grad_call(k, "Weight", dlogits, k["Input"], ids))
    if dbias is not None:
        line = dbias.reshape(-1)
        calls.append(lambda: (line.fill(0), row_kernels.add_at(line, ids, dlogits)))
    return lambda: [call() for call in calls]


def _samples_call(k, ids, true):
    """The call that fills a row's classes: its labels, then drawn ones (or those that a test asks for)."""
    labels, xp, given = k["Label"].reshape(ids.shape[0], true), k.xp, k.attr("custom_neg_classes")
    drawn = k.keep((ids.shape[0], ids.shape[1] - true), np.int64)
    draw = sampler_of(k, k.attr("num_total_classes")).draw(drawn)
    if given:
        drawn[...] = xp.asarray(np.array([given], np.int64))
        draw = None
    check = id_check(k, k.attr("num_total_classes"), "the classes")

    def run():
        check(labels)
        if draw is not None:
            draw()
        ids[:, :true] = labels
        ids[:, true:] = drawn
    return run
