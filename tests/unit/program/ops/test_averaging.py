"""Ops of program/ops/averaging.py; over several steps in tests/unit/program/optimizers/test_averages.py."""

import numpy as np

from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)
P, A, B, C = (rng.normal(size=(3, 4)) for _ in range(4))


def accumulates(counts, attrs, expect):
    """counts: accumulates, old accumulates, updates before; expect: the three sums and counts after."""
    names = ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates")
    values = [A, B, C, *(np.array([count]) for count in counts)]
    return Case("average_accumulates", {"param": P, **{f"in_{name}": value for name, value in zip(names, values)}},
                attrs, {f"out_{name}": np.asarray(value) for name, value in zip(names, expect)}, note=str(counts))


WINDOW = {"average_window": 0.5, "min_average_window": 3, "max_average_window": 5}
ZERO = np.zeros_like(P)
CASES = [
    Case("ema_decay", {"DecayPow": np.array([0.81])}, {"decay": 0.9},
         {"Decay": np.array([0.9]), "DecayPowOut": np.array([0.729])}),
    Case("ema_decay", {"DecayPow": np.array([0.5]), "ThresSteps": np.array([2])}, {"decay": 0.9},
         {"Decay": np.array([0.25]), "DecayPowOut": np.array([0.125])}, note="steps"),
    Case("ema_update", {"Param": P, "Ema": A, "Decay": np.array([0.75])}, expect={"EmaOut": 0.75 * A + 0.25 * P}),
    Case("ema_value", {"Param": P, "Ema": A, "DecayPow": np.array([0.5])}, expect={"Out": 2 * A}),
    Case("ema_value", {"Param": P, "Ema": A, "DecayPow": np.array([1.0])}, expect={"Out": P}, note="start"),
    accumulates((1, 4, 6), WINDOW, (A + P, B, C, [2], [4], [7])),
    accumulates((2, 4, 6), WINDOW, (A + P, B, C, [3], [4], [7])),
    accumulates((3, 4, 6), WINDOW, (ZERO, ZERO, A + P + B, [0], [4], [7])),
    accumulates((4, 4, 90), WINDOW, (ZERO, ZERO, A + P + B, [0], [5], [91])),
    accumulates((1, 4, 16383), WINDOW, (ZERO, B + A + P, C, [2], [4], [16384])),
    Case("average_value", {"param": P, "sum_1": A, "sum_2": B, "sum_3": C, "num_accumulates": np.array([2]),
                           "old_num_accumulates": np.array([3])}, expect={"Out": (A + B + C) / 5}),
    Case("average_value", {"param": P, "sum_1": ZERO, "sum_2": ZERO, "sum_3": ZERO, "num_accumulates": np.array([0]),
                           "old_num_accumulates": np.array([0])}, expect={"Out": P}, note="start"),
]

test_forward, test_device = checks(CASES)
