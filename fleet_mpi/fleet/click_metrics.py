"""Metrics of click models from sums over all samples: histograms of predictions, errors, clicks. Pure arithmetic."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_WIDEST_GROUP = 0.01  # a group of neighbouring buckets spans at most this much of the predictions
_MOST_RELATIVE_ERROR = 0.05  # a group is judged once its click rate is known that well


class ClickMetrics(NamedTuple):
    """In the order in which ``FleetUtil.get_global_metrics`` returns them."""

    auc: float
    bucket_error: float
    mae: float
    rmse: float
    actual_ctr: float
    predicted_ctr: float
    copc: float
    mean_predict_qvalue: float
    total_ins_num: int


def bucket_error(positives: np.ndarray, negatives: np.ndarray) -> float:
    """How far predicted click rates are from actual ones, per group of buckets, weighted by samples.

    Buckets are joined from the lowest prediction up until the rate of the group would be known within 5 % (by its
    prediction); a group wider than 0.01 is dropped and begun anew. 0 where no group is ever known that well.
    """
    shows, buckets = positives + negatives, len(positives)
    error = judged = 0.0
    start, show, predicted, click = -1.0, 0.0, 0.0, 0.0
    for bucket in range(buckets):
        rate = bucket / buckets
        if abs(rate - start) > _WIDEST_GROUP:
            start, show, predicted, click = rate, 0.0, 0.0, 0.0
        show, predicted, click = show + shows[bucket], predicted + rate * shows[bucket], click + positives[bucket]
        if not predicted:
            continue
        expected = predicted / show
        if math.sqrt((1 - expected) / (expected * show)) < _MOST_RELATIVE_ERROR:
            error, judged = error + abs(click / show / expected - 1) * show, judged + show
            start = -1.0
    return float(error / judged) if judged else 0.0


def click_metrics(auc: float, positives: np.ndarray, negatives: np.ndarray, sqrerr: float, abserr: float, prob: float,
                  q: float, pos_ins_num: float, total_ins_num: float) -> ClickMetrics:
    """All of them from an area and the sums over ``total_ins_num`` samples; 0 for a ratio without a denominator."""
    histograms = (np.asarray(one, np.float64).reshape(-1) for one in (positives, negatives))
    predicted = _ratio(prob, total_ins_num)
    actual = _ratio(pos_ins_num, total_ins_num)
    return ClickMetrics(auc, bucket_error(*histograms), _ratio(abserr, total_ins_num),
                        math.sqrt(_ratio(sqrerr, total_ins_num)), actual, predicted, _ratio(actual, predicted),
                        _ratio(q, total_ins_num), int(total_ins_num))


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 0.0
