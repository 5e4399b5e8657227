"""Logits of the labels and of a few drawn classes (sampled softmax), and drawing from rows of probabilities."""

import numpy as np

from fleet_mpi.kernels.reference import random
from fleet_mpi.kernels.reference.rows import add_at
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.engine.randomness import op_stream
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.class_sampling import LogUniform
from fleet_mpi.program.ops.drawing import drawn

FAR = 1e20  # taken from the logit of a drawn class that is one of the row's labels, as in the original


@op("sample_logits", "Logits Labels CustomizedSamples? CustomizedProbabilities?",
    "Samples Probabilities SampledLogits SampledLabels", grad_reads="Samples",
    no_grad="Labels CustomizedSamples CustomizedProbabilities",
    attrs={"num_samples": 1, "use_customized_samples": False, "uniq": True, "remove_accidental_hits": True,
           "seed": 0})
class SampleLogits:
    """Each row's logits at its labels and at ``num_samples`` classes drawn once for all rows, minus log chances.

    SampledLabels says where in them the labels are: at the front.
    """

    def infer(k):
        """Labels and samples side by side."""
        (rows, classes), labels = k.shape("Logits"), k.shape("Labels")
        if k.attr("num_samples") > classes > 0:
            k.fail(f"expected num_samples up to the {classes} classes, got {k.attr('num_samples')}")
        shape = [rows, labels[1] + k.attr("num_samples")]
        k.set("Samples", shape, np.int64, lod=())
        k.set("Probabilities", shape, k.dtype("Logits"), lod=())
        k.set("SampledLogits", shape, k.dtype("Logits"), lod=())
        k.set("SampledLabels", [rows, labels[1]], np.int64, lod=())

    def run(k):
        """Draw or copy, then correct."""
        logits, labels, samples, chances = k["Logits"], k["Labels"], k["Samples"], k["Probabilities"]
        out, places, xp = k["SampledLogits"], k["SampledLabels"], k.xp
        choose, true = (_copied if k.attr("use_customized_samples") else _drawn)(k), labels.shape[1]
        own = xp.arange(true, dtype="int64").reshape(1, true)
        removes, check = k.attr("remove_accidental_hits"), id_check(k, logits.shape[1], "the classes")

        def run():
            choose()
            check(samples)
            xp.copyto(places, own)
            made = xp.take_along_axis(logits, samples, axis=1)
            if removes:
                hits = (samples[:, true:, None] == samples[:, None, :true]).any(axis=2)
                made[:, true:] -= xp.where(hits, FAR, 0.0).astype(made.dtype)
            xp.copyto(out, xp.clip(made - xp.clip(xp.log(chances), -FAR, FAR), -FAR, FAR))
        return run

    def grad(k):
        """Back to where they came from."""
        dout, samples, dlogits, xp = k["SampledLogits@GRAD"], k["Samples"], k["Logits@GRAD"], k.xp
        rows = xp.arange(samples.shape[0], dtype="int64").reshape(-1, 1)
        return lambda: (dlogits.fill(0), add_at(dlogits, (rows, samples), dout))


def _copied(k):
    xp, pairs = k.xp, [(k["CustomizedSamples"], k["Samples"]), (k["CustomizedProbabilities"], k["Probabilities"])]
    return lambda: [xp.copyto(out, given, casting="same_kind") for given, out in pairs]


def _drawn(k):
    """The call that draws different classes; chances are those of being among them after so many tries."""
    labels, samples, chances, xp = k["Labels"], k["Samples"], k["Probabilities"], k.xp
    true, count, classes = labels.shape[1], k.attr("num_samples"), k.shape("Logits")[1]
    tries_of, sampler = _Tries(k, classes), LogUniform(k, classes)

    def run():
        found, tries = tries_of(count)
        samples[:, :true] = labels
        samples[:, true:] = xp.asarray(found)
        once = sampler.chance(samples)
        made = once * count if tries == count else -xp.expm1(tries * xp.log1p(-once))
        xp.copyto(chances, made, casting="same_kind")
    return run


class _Tries:
    """Draws classes by rank on the host until there are enough different ones."""

    def __init__(self, k, classes):
        seed = k.attr("seed")
        self.key, self.stream, self.classes = k.random_key(seed), op_stream(k, seed), classes
        self.log_range = np.log(classes + 1)

    def __call__(self, count):
        """(the first ``count`` different classes, how many tries it took)."""
        drawn_so_far = np.empty(0, np.int64)
        while True:
            shares = np.empty(2 * count + len(drawn_so_far))
            random.uniform(shares, self.key, self.stream(), 0, 0.0, 1.0)
            ranks = np.floor(np.exp(shares * self.log_range)) - 1
            drawn_so_far = np.clip(ranks, 0, self.classes - 1).astype(np.int64)
            first = np.sort(np.unique(drawn_so_far, return_index=True)[1])
            if len(first) >= count:
                return drawn_so_far[first[:count]], int(first[count - 1]) + 1


@op("sampling_id", "X", attrs={"min": 0.0, "max": 1.0, "seed": 0})
class SamplingId:
    """For each row of probabilities a column: the first at which their sum passes a number from min to max."""

    def infer(k):
        """One whole number for each row."""
        k.set("Out", [k.shape("X")[0]], np.int64, lod=())

    def run(k):
        """Draw one number a row, compare with running sums."""
        x, out, xp = k["X"], k["Out"], k.xp
        points = k.scratch((x.shape[0], 1), "float64")
        draw = drawn(k, points, random.uniform, float(k.attr("min")), float(k.attr("max")))
        last = x.shape[1] - 1
        return lambda: (draw(), xp.copyto(out, xp.minimum((xp.cumsum(x, axis=1) <= points).sum(axis=1), last)))
