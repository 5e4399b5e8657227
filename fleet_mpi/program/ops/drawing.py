"""Ops that draw random numbers, each by counter from (seed, name of the output, run): see
program/engine/randomness.py."""

from fleet_mpi.kernels.reference import random
from fleet_mpi.program.engine.randomness import op_stream
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.filling import BATCH_SIZE_LIKE, SHAPE_VARIABLES, infer_batch_size_like, infer_filled

FILLED = {"shape": [], "dtype": "float32", "seed": 0}
UNIFORM = {"min": -1.0, "max": 1.0}
NORMAL = {"mean": 0.0, "std": 1.0}


def drawn(k, out, kernel, *arguments):
    """The call that fills ``out`` with a fresh draw, or with the part of it from the op's ``offset`` on."""
    seed, offset = k.attr("seed", 0), int(k.attr("offset", 0))
    key, stream, draw = k.random_key(seed), op_stream(k, seed), kernel.pick(out)
    return lambda: draw(out, key, stream(), offset, *arguments)


def run_uniform(k):
    """Evenly from ``min`` to ``max``."""
    return drawn(k, k["Out"], random.uniform, float(k.attr("min")), float(k.attr("max")))


def run_normal(k):
    """Normal with ``mean`` and ``std``."""
    return drawn(k, k["Out"], random.normal, float(k.attr("mean")), float(k.attr("std")))


@op("uniform_random", SHAPE_VARIABLES, attrs={**FILLED, **UNIFORM})
class UniformRandom:
    """Evenly distributed."""

    infer = infer_filled
    run = run_uniform


@op("uniform_random_batch_size_like", "Input", attrs={**FILLED, **BATCH_SIZE_LIKE, **UNIFORM})
class UniformRandomBatchSizeLike:
    """Evenly distributed, as many rows as the input has."""

    infer = infer_batch_size_like
    run = run_uniform


@op("gaussian_random", SHAPE_VARIABLES, attrs={**FILLED, **NORMAL})
class GaussianRandom:
    """Normally distributed."""

    infer = infer_filled
    run = run_normal


@op("gaussian_random_batch_size_like", "Input", attrs={**FILLED, **BATCH_SIZE_LIKE, **NORMAL})
class GaussianRandomBatchSizeLike:
    """Normally distributed, as many rows as the input has."""

    infer = infer_batch_size_like
    run = run_normal


@op("truncated_gaussian_random", attrs={**FILLED, **NORMAL})
class TruncatedGaussianRandom:
    """Normally distributed, cut at two standard deviations."""

    infer = infer_filled

    def run(k):
        """Normal with ``mean`` and ``std``, cut."""
        return drawn(k, k["Out"], random.truncated_normal, float(k.attr("mean")), float(k.attr("std")))


@op("randint", SHAPE_VARIABLES, attrs={**FILLED, "dtype": "int64", "low": 0, "high": 1})
class RandInt:
    """Whole numbers from ``low`` up to, but not including, ``high``."""

    def infer(k):
        if not k.attr("low") < k.attr("high"):
            k.fail(f"expected low < high, got {k.attr('low')} and {k.attr('high')}")
        infer_filled(k)

    def run(k):
        return drawn(k, k["Out"], random.integers, int(k.attr("low")), int(k.attr("high")))


@op("bernoulli", "X", attrs={"seed": 0})
class Bernoulli:
    """1 with the probability that X gives, else 0."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        """Whether an even draw from [0, 1) lies below."""
        x, out, xp = k["X"], k["Out"], k.xp
        even = k.scratch(x.shape, "float32")
        draw = drawn(k, even, random.uniform, 0.0, 1.0)
        return lambda: (draw(), xp.less(even, x, out=out))


@op("randperm", attrs={"n": 1, "dtype": "int64", "seed": 0})
class RandPerm:
    """The numbers 0 .. n - 1 in a random order."""

    def infer(k):
        """As many as asked for."""
        if k.attr("n") < 1:
            k.fail(f"expected n from 1 up, got {k.attr('n')}")
        k.set("Out", [k.attr("n")], k.attr("dtype"), lod=())

    def run(k):
        """The order that sorts as many drawn words."""
        out, xp = k["Out"], k.xp
        words = k.scratch(out.shape, "uint32")
        draw = drawn(k, words, random.random_bits)
        return lambda: (draw(), xp.copyto(out, xp.argsort(words, kind="stable"), casting="same_kind"))
