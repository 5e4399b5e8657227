"""CRF kernels: both versions agree."""

import numpy as np

from fleet_mpi.kernels.reference import crf

SIZES = [([3, 0, 5], 4), ([1], 1), ([30, 7, 12], 9)]


def made(rng, lengths, tags, dtype):
    ends = np.cumsum(lengths)
    rows = int(ends[-1])
    return (rng.normal(size=(rows, tags)).astype(dtype), rng.normal(size=(tags + 2, tags)).astype(dtype),
            rng.integers(0, tags, rows), ends - lengths, ends)


def kept(emission, transition):
    return np.zeros_like(emission), np.zeros_like(emission), np.zeros_like(transition)


def cost(size, dtype):
    def make(rng):
        given = made(rng, *size, dtype)
        return *given, *kept(*given[:2]), np.empty(len(size[0]), dtype)
    return make


def cost_grad(size, dtype):
    def make(rng):
        emission, transition, labels, begins, ends = given = made(rng, *size, dtype)
        alpha, exps, transition_exps = kept(emission, transition)
        crf.crf_cost.reference(*given, alpha, exps, transition_exps, np.empty(len(ends), dtype))
        return (exps, transition_exps, alpha, labels, begins, ends, rng.normal(size=len(ends)).astype(dtype),
                *kept(emission, transition)[:2], np.empty_like(transition))
    return make


def best(size, dtype):
    def make(rng):
        emission, transition, labels, begins, ends = made(rng, *size, dtype)
        return emission, transition, begins, ends, np.empty_like(labels)
    return make


MAKERS = {"crf_cost": cost, "crf_cost_grad": cost_grad, "crf_best_tags": best}
KERNEL_CASES = {name: [make(size, dtype) for size in SIZES for dtype in (np.float32, np.float64)]
                for name, make in MAKERS.items()}
KERNEL_TOLERANCES = {"crf_cost": 2e-5, "crf_cost_grad": 2e-5}
