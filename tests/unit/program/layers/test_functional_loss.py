"""Losses in their 2.x form: reductions, ignored labels, class weights."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import functional_loss as loss
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 3)).astype(np.float32)
Y = rng.normal(size=(5, 3)).astype(np.float32)
LABELS = np.array([[0], [2], [1], [-1], [1]])
KNOWN = np.array([[0], [2], [1], [0], [1]])
WEIGHTS = np.array([0.5, 2.0, 1.0], np.float32)
P = (1 / (1 + np.exp(-Y))).astype(np.float32)
FEED = {"x": X, "y": Y, "p": P, "label": LABELS, "known": KNOWN, "weight": WEIGHTS, "flat": KNOWN[:, 0]}
LOGS = X - np.log(np.exp(X).sum(1, keepdims=True))
EACH = -LOGS[np.arange(5), KNOWN[:, 0]]
COUNTS = LABELS[:, 0] >= 0


def variables():
    return {"x": data("x", [3]), "y": data("y", [3]), "p": data("p", [3]), "label": data("label", [1], dtype="int64"),
            "known": data("known", [1], dtype="int64"), "flat": data("flat", [], dtype="int64"),
            "weight": data("weight", [3], append_batch_size=False)}


SHARE = WEIGHTS[KNOWN[:, 0]]
CASES = {
    "mean": (lambda v: loss.cross_entropy(v["x"], v["known"]), [EACH.mean()]),
    "flat labels": (lambda v: loss.cross_entropy(v["x"], v["flat"]), [EACH.mean()]),
    "sum": (lambda v: loss.cross_entropy(v["x"], v["known"], reduction="sum"), [EACH.sum()]),
    "none": (lambda v: loss.cross_entropy(v["x"], v["known"], reduction="none"), EACH[:, None]),
    "ignored": (lambda v: loss.cross_entropy(v["x"], v["label"], ignore_index=-1), [EACH[COUNTS].mean()]),
    "weighted": (lambda v: loss.cross_entropy(v["x"], v["known"], v["weight"]), [(EACH * SHARE).sum() / SHARE.sum()]),
    "weighted and ignored": (lambda v: loss.cross_entropy(v["x"], v["label"], v["weight"], ignore_index=-1),
                             [(EACH * SHARE)[COUNTS].sum() / SHARE[COUNTS].sum()]),
    "probabilities": (lambda v: loss.cross_entropy(v["p"], v["known"], use_softmax=False),
                      [-np.log(P[np.arange(5), KNOWN[:, 0]]).mean()]),
    "l1": (lambda v: loss.l1_loss(v["x"], v["y"], reduction="sum"), [np.abs(X - Y).sum()]),
    "mse": (lambda v: loss.mse_loss(v["x"], v["y"]), [((X - Y) ** 2).mean()]),
    "smooth l1": (lambda v: loss.smooth_l1_loss(v["x"], v["y"], "none"), np.where(
        np.abs(X - Y) < 1, (X - Y) ** 2 / 2, np.abs(X - Y) - 0.5)),
    "ranking": (lambda v: loss.margin_ranking_loss(v["x"], v["y"], v["p"], 0.5, "none"),
                np.maximum(0, 0.5 - P * (X - Y))),
    "kl": (lambda v: loss.kl_div(v["x"], v["p"]), [(P * (np.log(P) - X)).mean()]),
    "binary": (lambda v: loss.binary_cross_entropy(v["p"], v["p"]),
               [-(P * np.log(P) + (1 - P) * np.log(1 - P)).mean()]),
    "binary logits": (lambda v: loss.binary_cross_entropy_with_logits(v["y"], v["p"], pos_weight=v["weight"]),
                      [-((P * np.log(P) + (1 - P) * np.log(1 - P)) * (1 + P * (WEIGHTS - 1))).mean()]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_equal_the_formula(name):
    build, expected = CASES[name]
    made = Executor().run(feed=FEED, fetch_list=[build(variables())])[0]
    assert made.shape == np.shape(expected)
    np.testing.assert_allclose(made, expected, rtol=1e-4)


def test_gradients_flow_through_a_weighted_mean():
    v = variables()
    cost = loss.cross_entropy(fc(v["x"], 3, param_attr=Constant(0.0)), v["label"], v["weight"], ignore_index=-1)
    (_, gradient), *_ = append_backward(cost)
    executor = Executor()
    executor.run(default_startup_program())
    made = np.asarray(executor.run(feed=FEED, fetch_list=[gradient])[0])
    share = np.where(COUNTS, SHARE, 0)[:, None] / SHARE[COUNTS].sum()
    np.testing.assert_allclose(made, X.T @ ((1 / 3 - np.eye(3)[KNOWN[:, 0]]) * share), rtol=1e-4, atol=1e-6)


def test_an_unknown_reduction_is_refused():
    v = variables()
    with pytest.raises(UsageError, match="'mean', 'sum' or 'none'"):
        loss.mse_loss(v["x"], v["y"], "average")


@pytest.mark.parametrize("reduction, expected", (("none", lambda costs: costs), ("sum", lambda costs: [costs.sum()]),
                                                 ("mean", lambda costs: [(costs / [1, 2]).mean()])))
def test_ctc_costs_of_paths_that_can_be_counted(reduction, expected):
    # Two rows of three classes, equally likely: the label a has the paths _a, a_ and aa of 9, the labels ab one.
    logits, labels = data("logits", [2, 2, 3], append_batch_size=False), data("labels", [2, 2], dtype="int32",
                                                                           append_batch_size=False)
    rows, counts = (data(name, [2], dtype="int64", append_batch_size=False) for name in ("rows", "counts"))
    made = loss.ctc_loss(logits, labels, rows, counts, reduction=reduction)
    feed = {"logits": np.zeros((2, 2, 3), np.float32), "labels": np.array([[1, 0], [1, 2]], np.int32),
            "rows": np.array([2, 2]), "counts": np.array([1, 2])}
    value, = Executor().run(feed=feed, fetch_list=[made])
    assert np.allclose(value, expected(-np.log(np.array([3 / 9, 1 / 9]))))
