"""Rows of a slab by slot. That rules have the bits of a table of fixed height: tables/growing/test_store.py."""

import numpy as np

from fleet_mpi.kernels.reference import row_slab

WIDE = (5, 16, 33)


def rule_case(width, states, dtype, *rest, count=30, ones=()):
    """Rows 0..39 of a slab, of which some are updated; ``ones`` are arrays of one number before the rate."""
    def make(rng):
        slab = np.zeros((40, states * width + width + 3), dtype)
        slab[:, :-3] = rng.uniform(0.1, 1.0, (40, states * width + width))
        slots = rng.permutation(40)[:count].astype(np.int32)
        grads = rng.standard_normal((count, width)).astype(dtype)
        return slab, slots, grads, *(np.array([one], dtype) for one in ones), np.array([0.1], np.float32), *rest
    return make


def cases(states, *rests, **options):
    return [rule_case(width, states, dtype, *rest, **options) for width in WIDE for dtype in (np.float32, np.float64)
            for rest in rests] + [rule_case(4, states, np.float32, *rests[0], count=0, **options)]


def copy_case(width, count):
    def make(rng):
        slots = rng.integers(-1, 40, count).astype(np.int32)
        return rng.standard_normal((40, 20)).astype(np.float32), slots, np.full((count, width), 7, np.float32)
    return make


def begin_case(count):
    def make(rng):
        slots = rng.permutation(40)[:count].astype(np.int32)
        values = rng.standard_normal((count, 5)).astype(np.float32)
        return np.full((40, 16), 3, np.float32), slots, values, np.arange(11, dtype=np.float32)
    return make


def move_case(*moves):
    return lambda rng: (rng.standard_normal((9, 4)).astype(np.float32), np.array(moves, np.int32).reshape(-1, 2))


ADAM_RESTS = [(0.9, 0.999, 1e-8, 0.0, True), (0.9, 0.999, 1e-8, 0.0, False), (0.5, 0.9, 1e-3, 0.1, True)]
KERNEL_CASES = {
    "gather": [copy_case(width, count) for width in (1, 16, 20) for count in (0, 3, 100)],
    "begin": [begin_case(count) for count in (0, 1, 30)],
    "move": [move_case(), move_case((8, 2), (7, 8), (6, 6))],
    "sgd": cases(0, ()),
    "momentum": cases(1, (0.9, False, 1.0), (0.5, True, 0.25)),
    "adagrad": cases(1, (1e-6,)),
    "adagrad_rowwise": cases(1, (1e-6,)),
    "adam": cases(2, *ADAM_RESTS, ones=(0.9, 0.999)),
    "ftrl": cases(2, (0.0, 0.0, -0.5), (0.1, 0.2, -0.5), (0.1, 0.2, -0.3)),
}
KERNEL_TOLERANCES = {"ftrl": 1e-5}


def test_slots_that_are_not_there_are_left_alone():
    out = np.full((3, 2), 9, np.float32)
    row_slab.gather(np.arange(12, dtype=np.float32).reshape(3, 4), np.array([2, -1, 0], np.int32), out)
    np.testing.assert_array_equal(out, [[8, 9], [9, 9], [0, 1]])
