"""Metric kernels: both versions agree, and the area equals that of all pairs compared."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import metric as kernels


def hits(rows, k):
    return lambda rng: (rng.integers(0, 6, (rows, k)), rng.integers(0, 6, rows), np.zeros(1, np.int32))


def histograms(size, bins, dtype):
    return lambda rng: (np.concatenate([[0.0, 1.0], rng.uniform(0, 1, size)]).astype(dtype),
                        rng.integers(-1, 3, size + 2), rng.integers(0, 9, bins), rng.integers(0, 9, bins))


def sliding(bins, steps, calls):
    def make(rng):
        states = [np.zeros((steps + 1) * bins + 1, np.int64) if steps else np.zeros(bins, np.int64) for _ in range(2)]
        for _ in range(calls):
            kernels.add_to_sliding_histograms.reference(rng.uniform(0, 1, 9), rng.integers(0, 2, 9), *states, steps)
        return rng.uniform(0, 1, 50), rng.integers(0, 2, 50), *states, steps
    return make


def counts(bins, most):
    return lambda rng: (rng.integers(0, most, bins), rng.integers(0, most, bins), np.zeros(1))


KERNEL_CASES = {
    "count_hits": [hits(1, 1), hits(100, 1), hits(100, 5)],
    "add_to_histograms": [histograms(500, bins, dtype) for bins in (2, 64, 4096) for dtype in (np.float32, np.float64)],
    "add_to_sliding_histograms": [sliding(8, *case) for case in ((0, 2), (1, 0), (1, 3), (3, 2), (3, 8))],
    "area_under_roc": [counts(5, 10), counts(4096, 1000), counts(8, 1)],
}
KERNEL_TOLERANCES = {"area_under_roc": 1e-12}


@pytest.mark.parametrize("wrong", [-0.1, 1.5, np.nan])
def test_a_score_outside_0_to_1_is_found_and_changes_nothing(wrong):
    positive, negative = np.zeros(5, np.int64), np.zeros(5, np.int64)
    scores = np.array([0.5, wrong], np.float32)
    assert kernels.add_to_histograms(scores, np.array([1, 0]), positive, negative) == 1
    assert not positive.any() and not negative.any()


def test_the_area_is_the_share_of_pairs_in_order_ties_counting_half():
    rng = np.random.default_rng(3)
    scores, labels = rng.integers(0, 21, 300) / 20, rng.integers(0, 2, 300)
    positive, negative, area = np.zeros(21, np.int64), np.zeros(21, np.int64), np.empty(1)
    kernels.add_to_histograms(scores, labels, positive, negative)
    kernels.area_under_roc(positive, negative, area)
    ahead = scores[labels == 1][:, None] - scores[labels == 0]
    assert area[0] == pytest.approx((ahead > 0).mean() + (ahead == 0).mean() / 2)


@pytest.mark.parametrize("run", [kernels.add_to_sliding_histograms, kernels.add_to_sliding_histograms.reference])
def test_the_sum_holds_the_last_steps_only(run):
    rng, steps, bins, told = np.random.default_rng(4), 3, 5, []
    positive, negative = np.zeros((steps + 1) * bins + 1, np.int64), np.zeros((steps + 1) * bins + 1, np.int64)
    for call in range(8):
        scores, labels = rng.uniform(0, 1, 6), rng.integers(0, 2, 6)
        run(scores, labels, positive, negative, steps)
        told.append(np.bincount((scores[labels == 1] * (bins - 1)).astype(int), minlength=bins))
        assert positive[steps * bins:-1].tolist() == sum(told[-steps:]).tolist()
        assert positive[-1] == negative[-1] == call + 1
