"""Layers of program/layers/sampled_loss.py: what is built, what is refused, and that they train."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers import sampled_loss as layers
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import Adam

CLASSES, WIDTH = 20, 8


def word_and_next():
    word, following = data("word", [1], dtype="int64"), data("next", [1], dtype="int64")
    return embedding(word, [CLASSES, WIDTH], is_sparse=True), following


def costs_of_training(cost, steps=150):
    """First and last cost of learning that word w is followed by 3 w + 1."""
    default_main_program().random_seed = default_startup_program().random_seed = 1
    average = mean(cost)
    Adam(0.05).minimize(average)
    executor, scope, rng = Executor(), Scope(), np.random.default_rng(0)
    executor.run(default_startup_program(), scope=scope)
    found = []
    for _ in range(steps):
        words = rng.integers(0, CLASSES, (32, 1))
        found += executor.run(feed={"word": words, "next": (3 * words + 1) % CLASSES}, fetch_list=[average],
                              scope=scope)
    return float(found[0].item()), float(found[-1].item())


SHARES = np.arange(1, CLASSES + 1) / sum(range(1, CLASSES + 1))


@pytest.mark.parametrize("options", [
    {}, {"sampler": "log_uniform", "is_sparse": True, "seed": 7}, {"sampler": "custom_dist", "custom_dist": SHARES},
    {"bias_attr": False, "num_neg_samples": 3}], ids=str)
def test_nce_learns(options):
    rows, following = word_and_next()
    first, last = costs_of_training(layers.nce(rows, following, CLASSES, **options))
    assert last < first / 3


@pytest.mark.parametrize("is_sparse", [True, False])
def test_hsigmoid_learns_in_a_complete_tree(is_sparse):
    rows, following = word_and_next()
    first, last = costs_of_training(layers.hsigmoid(rows, following, CLASSES, is_sparse=is_sparse))
    assert last < first / 3


def test_sampled_softmax_learns():
    rows, following = word_and_next()
    loss = layers.sampled_softmax_with_cross_entropy(fc(rows, CLASSES), following, num_samples=5, seed=1)
    first, last = costs_of_training(loss)
    assert loss.shape == (-1, 1) and last < first / 3


def test_nce_makes_a_weight_a_bias_and_a_mean_over_the_samples():
    rows, following = word_and_next()
    weight = data("weight", [1])
    cost = layers.nce(rows, following, CLASSES, weight, "w", "b", 5, sampler="custom_dist",
                      custom_dist=SHARES.tolist(), is_sparse=True)
    block = default_main_program().global_block()
    made, scaled = block.ops[-2:]
    assert made.type == "nce" and made.attr("num_neg_samples") == 5 and made.attr("sampler") == 2
    assert made.input("SampleWeight") == ["weight"] and (made.input("Weight"), made.input("Bias")) == (["w"], ["b"])
    assert block.var("w").shape == (CLASSES, WIDTH) and block.var("b").shape == (CLASSES, 1)
    assert scaled.type == "scale" and scaled.attr("scale") == 1 / 6 and scaled.output("Out") == [cost.name]
    given = block.var(made.input("CustomDistProbs")[0])
    assert not given.trainable and given.shape == (CLASSES,)


def test_the_gradient_of_a_sparse_weight_is_rows():
    rows, following = word_and_next()
    Adam(0.1).minimize(mean(layers.nce(rows, following, CLASSES, param_attr="w", bias_attr="b", is_sparse=True)))
    block = default_main_program().global_block()
    assert block.var("w@GRAD").type == VarType.SELECTED_ROWS and block.var("b@GRAD").type != VarType.SELECTED_ROWS


def test_a_tree_of_ones_own_has_a_node_for_each_row_of_the_weight():
    rows, label = word_and_next()
    table, code = data("table", [4], dtype="int64"), data("code", [4], dtype="int64")
    out = layers.hsigmoid(rows, label, 9, path_table=table, path_code=code, is_custom=True, is_sparse=True)
    made = default_main_program().global_block().ops[-1]
    assert default_main_program().global_block().var(made.input("W")[0]).shape == (9, WIDTH)
    assert made.input("PathTable") == ["table"] and out.shape == (-1, 1)


@pytest.mark.parametrize("build, text", [
    (lambda rows, label: layers.nce(rows, label, 5, sampler="zipf"),
     "expected one of uniform, log_uniform, custom_dist"),
    (lambda rows, label: layers.nce(rows, label, 5, sampler="custom_dist"), "a probability for each of 5 classes"),
    (lambda rows, label: layers.nce(rows, label, 5, sampler="custom_dist", custom_dist=[1.0]), "5 classes, got 1"),
    (lambda rows, label: layers.hsigmoid(rows, label, 1), "num_classes from 2 up, got 1"),
    (lambda rows, label: layers.hsigmoid(rows, label, 5, is_custom=True), "needs path_table and path_code"),
    (lambda rows, label: layers.sampled_softmax_with_cross_entropy(rows, label, 2, use_customized_samples=True),
     "needs customized_samples")])
def test_what_cannot_be_built_is_refused(build, text):
    with pytest.raises(UsageError, match=text):
        build(*word_and_next())
