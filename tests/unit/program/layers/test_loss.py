"""Layers of program/layers/loss.py: what is built, and values against the formula."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers import loss
from fleet_mpi.program.layers.data import data

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 3)).astype(np.float32)
Y = rng.normal(size=(4, 3)).astype(np.float32)
SHARES = (np.exp(X) / np.exp(X).sum(1, keepdims=True)).astype(np.float32)
LABELS = np.array([[0], [2], [1], [1]])
FEED = {"x": X, "y": Y, "p": SHARES, "label": LABELS}
ROWS = np.arange(4)


def variables():
    return data("x", [3]), data("y", [3]), data("p", [3]), data("label", [1], dtype="int64")


def run(*fetches):
    return [np.asarray(one) for one in Executor().run(feed=FEED, fetch_list=list(fetches))]


def types():
    return [op.type for op in default_main_program().global_block().ops]


def test_cross_entropy_of_class_numbers_and_of_shares():
    _, _, p, label = variables()
    hard, soft = loss.cross_entropy(p, label), loss.cross_entropy(p, p, soft_label=True)
    assert types() == ["cross_entropy2", "cross_entropy"] and hard.name == "cross_entropy_0.tmp_0"
    one, other = run(hard, soft)
    np.testing.assert_allclose(one[:, 0], -np.log(SHARES[ROWS, LABELS[:, 0]]), rtol=1e-5)
    np.testing.assert_allclose(other[:, 0], -(SHARES * np.log(SHARES)).sum(1), rtol=1e-5)


def test_softmax_with_cross_entropy_also_gives_the_softmax_when_asked():
    x, _, _, label = variables()
    made, share = loss.softmax_with_cross_entropy(x, label, return_softmax=True)
    one, other = run(made, share)
    np.testing.assert_allclose(other, SHARES, rtol=1e-5)
    np.testing.assert_allclose(one[:, 0], -np.log(SHARES[ROWS, LABELS[:, 0]]), rtol=1e-5)
    assert loss.softmax_with_cross_entropy(x, label).shape == (-1, 1)


@pytest.mark.parametrize("build, formula", [
    (lambda x, y, p: loss.mse_loss(x, y), lambda: ((X - Y) ** 2).mean().reshape(1)),
    (lambda x, y, p: loss.log_loss(p, p), lambda: -SHARES * np.log(SHARES + 1e-4)
     - (1 - SHARES) * np.log(1 - SHARES + 1e-4)),
    (lambda x, y, p: loss.sigmoid_cross_entropy_with_logits(x, p),
     lambda: np.log1p(np.exp(-np.abs(X))) + np.maximum(X, 0) - X * SHARES),
    (lambda x, y, p: loss.huber_loss(x, y, 0.5), lambda: np.where(
        np.abs(X - Y) <= 0.5, (X - Y) ** 2 / 2, 0.5 * (np.abs(X - Y) - 0.25))),
    (lambda x, y, p: loss.smooth_l1(x, y), lambda: np.where(
        np.abs(X - Y) < 1, (X - Y) ** 2 / 2, np.abs(X - Y) - 0.5).sum(1, keepdims=True)),
    (lambda x, y, p: loss.kldiv_loss(x, p, reduction="batchmean"),
     lambda: ((SHARES * (np.log(SHARES) - X)).sum() / 4).reshape(1)),
    (lambda x, y, p: loss.rank_loss(p, x, y), lambda: np.log1p(np.exp(X - Y)) - SHARES * (X - Y)),
    (lambda x, y, p: loss.margin_rank_loss(p, x, y), lambda: np.maximum(0, 0.1 - SHARES * (X - Y))),
    (lambda x, y, p: loss.label_smooth(p), lambda: 0.9 * SHARES + 0.1 / 3),
])
def test_values_equal_the_formula(build, formula):
    x, y, p, _ = variables()
    np.testing.assert_allclose(run(build(x, y, p))[0], formula(), rtol=1e-4, atol=1e-6)


def test_ranking_by_bpr_and_dice_of_a_perfect_guess():
    x, _, _, label = variables()
    expected = [np.mean([np.log1p(np.exp(row[j] - row[wanted])) for j in range(3) if j != wanted])
                for row, wanted in zip(X, LABELS[:, 0])]
    guess = data("guess", [3])
    feed = {**FEED, "guess": np.eye(3, dtype=np.float32)[LABELS[:, 0]]}
    ranking, dice = loss.bpr_loss(x, label), loss.dice_loss(guess, label)
    one, other = Executor().run(feed=feed, fetch_list=[ranking, dice])
    np.testing.assert_allclose(np.asarray(one)[:, 0], expected, rtol=1e-5)
    assert other[0] == pytest.approx(0, abs=1e-4)


def test_what_is_no_variable_is_refused_by_name():
    with pytest.raises(UsageError, match="'Labels' must be a variable"):
        loss.log_loss(data("p", [3]), 1.0)
