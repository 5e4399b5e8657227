"""Losses as classes (loss_classes), and the functions of functional_loss behind them, against numpy."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import functional_loss, loss_classes, sampled_loss
from fleet_mpi.program.layers.data import static_data

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=(4, 3)).astype("float32") for _ in range(2))
LABEL = np.array([2, 0, 1, 1])


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def two():
    return static_data("a", [None, 3]), static_data("b", [None, 3])


def test_the_likelihood_of_labels():
    a, label = static_data("a", [None, 3]), static_data("label", [None], "int64")
    weight = static_data("weight", [3])
    found = run(loss_classes.NLLLoss()(a, label), loss_classes.NLLLoss(reduction="sum")(a, label),
                loss_classes.NLLLoss(ignore_index=1, reduction="none")(a, label),
                loss_classes.NLLLoss(weight)(a, label),
                a=A, label=LABEL, weight=np.array([1, 2, 3], "float32"))
    picked, shares = -A[np.arange(4), LABEL], np.array([3, 1, 2, 2])
    wanted = [[picked.mean()], [picked.sum()], np.where(LABEL == 1, 0, picked),
              [(picked * shares).sum() / shares.sum()]]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_losses_of_two_variables():
    a, b = two()
    found = run(loss_classes.KLDivLoss("sum")(a, b), loss_classes.SmoothL1Loss(delta=0.5)(a, b),
                loss_classes.MarginRankingLoss(0.2, "sum")(a, b, static_data("sign", [None, 3])),
                loss_classes.PairwiseDistance()(a, b), loss_classes.PairwiseDistance(p=1, keepdim=True)(a, b),
                a=A, b=np.abs(B), sign=np.sign(A))
    apart = np.abs(A - np.abs(B))
    huber = np.where(apart <= 0.5, apart ** 2 / 2, 0.5 * (apart - 0.25))
    wanted = [[(np.abs(B) * (np.log(np.abs(B)) - A)).sum()], [huber.mean()],
              [np.maximum(0, 0.2 - np.sign(A) * (A - np.abs(B))).sum()], np.sqrt((apart ** 2).sum(1)),
              apart.sum(1, keepdims=True)]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_focal_loss_is_small_where_the_guess_is_right():
    a, b = two()
    label = (B > 0).astype("float32")
    found = run(functional_loss.sigmoid_focal_loss(a, b), functional_loss.sigmoid_focal_loss(
        a, b, static_data("n", [1]), alpha=0.4, gamma=3.0, reduction="none"), a=A, b=label,
                n=np.array([2.0], "float32"))
    p = 1 / (1 + np.exp(-A.astype("float64")))

    def focal(alpha, gamma):
        return -label * alpha * (1 - p) ** gamma * np.log(p) - (1 - label) * (1 - alpha) * p ** gamma * np.log(1 - p)
    np.testing.assert_allclose(found[0], [focal(0.25, 2).sum()], rtol=1e-4)
    np.testing.assert_allclose(found[1], focal(0.4, 3) / 2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("custom", [False, True])
def test_a_tree_of_classes_costs_what_it_does_in_1x(custom):
    a, label = static_data("a", [None, 3]), static_data("label", [None, 1], "int64")
    table, code = (static_data(name, [None, 2], "int64") for name in ("table", "code")) if custom else (None, None)
    same = dict(name="w"), dict(name="b")
    want = sampled_loss.hsigmoid(a, label, 4, ParamAttr(**same[0]), ParamAttr(**same[1]), path_table=table,
                                 path_code=code,
                                 is_custom=custom)
    layer = loss_classes.HSigmoidLoss(3, 4, ParamAttr(**same[0]), ParamAttr(**same[1]), is_custom=custom)
    feed = dict(a=A, label=LABEL[:, None])
    if custom:
        feed |= dict(table=np.array([[0, 1], [0, 2], [3, -1], [0, 3]]),
                     code=np.array([[0, 1], [1, 1], [0, -1], [1, 0]]))
    found, wanted = run(layer(a, label, table, code) if custom else layer(a, label), want, **feed)
    np.testing.assert_array_equal(found, wanted)
    assert found.shape == (4, 1) and layer.weight.shape == (4 if custom else 3, 3)


def test_ctc_as_a_class_is_the_function():
    logits = static_data("logits", [5, 2, 4])
    rest = [static_data(name, shape, dtype) for name, shape, dtype in (
        ("labels", [2, 2], "int32"), ("steps", [2], "int64"), ("counts", [2], "int64"))]
    found = run(loss_classes.CTCLoss(reduction="none")(logits, *rest), functional_loss.ctc_loss(
        logits, *rest, reduction="none"), logits=RNG.normal(size=(5, 2, 4)).astype("float32"),
        labels=np.array([[1, 2], [3, 3]], "int32"), steps=np.array([5, 4]), counts=np.array([2, 1]))
    np.testing.assert_array_equal(*found)


def test_a_tree_needs_classes_and_paths():
    with pytest.raises(UsageError, match="from 2 up"):
        loss_classes.HSigmoidLoss(3, 1)
    with pytest.raises(UsageError, match="needs path_table and path_code"):
        loss_classes.HSigmoidLoss(3, 4, is_custom=True)(static_data("a", [None, 3]),
                                                        static_data("l", [None, 1], "int64"))
