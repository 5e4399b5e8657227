"""Ops of program/ops/nce.py, and how their negatives are drawn."""

import math

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.ops.class_sampling import alias_table
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)
CLASSES, WIDTH = 7, 3
NEGATIVES = [1, 4, 4, 2]
CHANCES = np.array([0.125, 0.25, 0.1875, 0.0625, 0.0625, 0.1875, 0.125])  # exact in float32


def chance(sampler, c):
    if sampler == 1:
        return math.log((c + 2) / (c + 1)) / math.log(CLASSES)
    return CHANCES[c] if sampler == 2 else 1 / CLASSES


def costs(inputs, attrs):
    """Class by class, as the formula says."""
    x, weight, labels = inputs["Input"], inputs["Weight"], inputs["Label"].reshape(len(inputs["Input"]), -1)
    bias, weights = inputs.get("Bias"), inputs.get("SampleWeight", np.ones(len(x))).reshape(-1)
    chosen = np.array([[*row, *NEGATIVES] for row in labels])
    cost, shares = np.zeros((len(x), 1)), np.zeros(chosen.shape)
    for i, row in enumerate(chosen):
        for j, c in enumerate(row):
            logit = x[i] @ weight[c] + (0 if bias is None else bias[c, 0])
            shares[i, j] = o = 1 / (1 + math.exp(-logit))
            q = chance(attrs["sampler"], c) * len(NEGATIVES)
            cost[i] -= weights[i] * math.log((o if j < labels.shape[1] else q) / (o + q))
    return {"Cost": cost, "SampleLogits": shares, "SampleLabels": chosen}


def distribution():
    alias, kept = alias_table(CHANCES)
    return {"CustomDistProbs": CHANCES.astype(np.float32), "CustomDistAlias": np.array(alias, np.int32),
            "CustomDistAliasProbs": np.array(kept, np.float32)}


def case(sampler=0, true=1, sparse=False, with_bias=True, with_weight=False, given=NEGATIVES, labels=None, rows=4):
    inputs = {"Input": rng.normal(size=(rows, WIDTH)),
              "Label": rng.integers(0, CLASSES, (rows, true)) if labels is None else labels,
              "Weight": rng.normal(size=(CLASSES, WIDTH))}
    if with_bias:
        inputs["Bias"] = rng.normal(size=(CLASSES, 1))
    if with_weight:
        inputs["SampleWeight"] = rng.uniform(0.5, 2, (rows, 1))
    if sampler == 2:
        inputs.update(distribution())
    attrs = {"num_total_classes": CLASSES, "num_neg_samples": len(NEGATIVES), "sampler": sampler,
             "custom_neg_classes": given, "is_sparse": sparse, "seed": 3}
    return Case("nce", inputs, attrs, costs, grads="Input Weight" + (" Bias" if with_bias else ""), by="Cost",
                note=f"sampler {sampler} true {true}{' rows' if sparse else ''}", near=1e-5)


CASES = [case(), case(1, sparse=True), case(2), case(true=2, with_weight=True), case(with_bias=False, sparse=True)]
test_forward, test_gradient, test_device = checks(CASES)


def drawn(sampler, rows=4000):
    one = case(sampler, given=[], rows=rows)
    one.expect = {"Cost": np.zeros((rows, 1)), "SampleLogits": np.zeros((rows, 5)),
                  "SampleLabels": np.zeros((rows, 5), np.int64)}
    found, = Built(one).run(["SampleLabels_out_0"])
    assert (found[:, 0] == one.inputs["Label"][:, 0]).all()
    return found[:, 1:]


@pytest.mark.parametrize("sampler, shares", [
    (0, [1 / CLASSES] * CLASSES), (1, [chance(1, c) for c in range(CLASSES - 1)] + [0]), (2, CHANCES)])
def test_classes_are_drawn_as_often_as_the_sampler_says(sampler, shares):
    found = drawn(sampler)
    np.testing.assert_allclose(np.bincount(found.ravel(), minlength=CLASSES) / found.size, shares, atol=0.02)
    assert (found[0] != found[1:6]).any(axis=1).all() or sampler == 1, "every row has draws of its own"


def test_the_same_seed_draws_the_same_and_the_next_run_others():
    built, again = Built(case(given=[], rows=20)), Built(case(given=[], rows=20))
    executor = Executor()
    first, second = (executor.run(built.program, built.feed, ["SampleLabels_out_0"], scope=built.scope)[0][:, 1:]
                     for _ in range(2))
    np.testing.assert_array_equal(first, again.run(["SampleLabels_out_0"])[0][:, 1:])
    assert (first != second).any()


def test_the_gradient_of_a_sparse_weight_has_the_rows_of_the_samples_only():
    one = case(sparse=True, labels=np.array([[6], [6], [0], [0]]))
    built = Built(one, with_grad=True)
    found = built.run([built.gradients[1]], return_numpy=False)[0]
    assert isinstance(found, Rows) and set(found.ids.tolist()) == {6, 0, 1, 4, 2} and found.height == CLASSES


@pytest.mark.parametrize("bad", [CLASSES, -1])
def test_a_label_that_is_no_class_is_refused(bad):
    one = case(labels=np.array([[0], [bad], [1], [1]]))
    one.outputs = {slot: [None] for slot in ("Cost", "SampleLogits", "SampleLabels")}
    with pytest.raises(ProgramError, match=rf"id {bad} at position 1 is outside the classes of {CLASSES} rows"):
        Built(one).run(["Cost_out_0"])


def test_an_alias_table_gives_back_its_probabilities():
    alias, kept = alias_table(CHANCES)
    shares = np.zeros(CLASSES)
    for c in range(CLASSES):
        shares[c] += kept[c] / CLASSES
        shares[alias[c]] += (1 - kept[c]) / CLASSES
    np.testing.assert_allclose(shares, CHANCES, atol=1e-12)
