"""How classes are drawn as negative examples: all alike, by the logarithm of their rank, or by given probabilities.

A sampler has ``draw(out)``, the call that fills an int64 array, and ``chance(ids)``, the probability of each class.
"""

import math

from fleet_mpi.kernels.reference import random
from fleet_mpi.program.ops.drawing import drawn

UNIFORM, LOG_UNIFORM, CUSTOM = range(3)
PROBABILITIES = "CustomDistProbs? CustomDistAlias? CustomDistAliasProbs?"


class Uniform:
    """All classes alike."""

    def __init__(self, k, classes):
        self.k, self.classes = k, classes

    def draw(self, out):
        """One word for each."""
        return drawn(self.k, out, random.integers, 0, self.classes)

    def chance(self, ids):
        """1 / classes."""
        return self.k.xp.full(ids.shape, 1.0 / self.classes, "float64")


class LogUniform:
    """Zipf's law: class c, by rank, with log((c + 2) / (c + 1)) / log(classes + 1)."""

    def __init__(self, k, classes):
        self.k, self.classes, self.log_range = k, classes, math.log(classes + 1)

    def draw(self, out):
        """e to an evenly drawn power, cut to whole numbers; never beyond the last class, whatever exp rounds to."""
        shares, xp = self.k.scratch(out.shape, "float64"), self.k.xp
        fill = drawn(self.k, shares, random.uniform, 0.0, 1.0)

        def run():
            fill()
            ranks = xp.floor(xp.exp(shares * self.log_range)) - 1
            xp.copyto(out, xp.clip(ranks, 0, self.classes - 1), casting="unsafe")
        return run

    def chance(self, ids):
        """The share of the logarithm between c + 1 and c + 2."""
        xp = self.k.xp
        return xp.log((ids + 2.0) / (ids + 1.0)) / self.log_range


class Custom:
    """By given probabilities: a class drawn evenly is kept with its alias probability, else replaced by its alias."""

    def __init__(self, k, classes):
        self.k, self.classes = k, classes
        self.probs, self.alias, self.kept = (
            k[slot].reshape(-1) for slot in ("CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"))

    def draw(self, out):
        """Two numbers for each: which class, and whether it is kept."""
        shares, xp = self.k.scratch((2, *out.shape), "float64"), self.k.xp
        fill = drawn(self.k, shares, random.uniform, 0.0, 1.0)

        def run():
            fill()
            first = xp.minimum((shares[0] * self.classes).astype("int64"), self.classes - 1)
            xp.copyto(out, xp.where(shares[1] < self.kept[first], first, self.alias[first]), casting="unsafe")
        return run

    def chance(self, ids):
        """As given."""
        return self.probs[ids].astype("float64")


def sampler_of(k, classes):
    """The sampler that nce asks for. Zipf's never draws the last class: the original's has one class less."""
    kind = k.attr("sampler")
    if kind == CUSTOM and not k.has("CustomDistProbs"):
        k.fail("sampler 2 (custom_dist) needs CustomDistProbs, CustomDistAlias and CustomDistAliasProbs")
    return Custom(k, classes) if kind == CUSTOM else LogUniform(k, classes - 1) if kind == LOG_UNIFORM \
        else Uniform(k, classes)


def alias_table(probabilities):
    """(alias, kept): for each class its alias, and the probability to keep it (Walker; Vose's two lists)."""
    classes = len(probabilities)
    kept, alias = [float(p) * classes for p in probabilities], list(range(classes))
    small = [c for c in range(classes) if kept[c] < 1]
    large = [c for c in range(classes) if kept[c] > 1]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        kept[rich] -= 1 - kept[poor]
        if kept[rich] <= 1:
            large.pop()
        if kept[rich] < 1:
            small.append(rich)
    for left in small:  # what rounding has left over is as good as full
        kept[left] = 1.0
    return alias, [min(share, 1.0) for share in kept]
