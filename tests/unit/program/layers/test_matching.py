"""Layers of program/layers/matching.py: the documented examples, and a model that matches texts."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, create_lod_tensor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program

rng = np.random.default_rng(0)
layers, contrib = fluid.layers, fluid.contrib


def sequences(values, lengths):
    return create_lod_tensor(np.asarray(values), [list(lengths)], fluid.CPUPlace())


def test_the_documented_examples_have_the_shapes_they_promise():
    x, y = (layers.data(name=name, shape=[10], lod_level=1) for name in "xy")
    out, product = contrib.match_matrix_tensor(x=x, y=y, channel_num=3)
    assert out.shape == product.shape == (-1, 1) and out.lod_level == 1 and product.stop_gradient
    row, col = (layers.data(name=name, shape=[6], lod_level=1) for name in ("row", "col"))
    image = contrib.var_conv_2d(input=out, row=row, col=col, input_channel=3, output_channel=5, filter_size=[3, 3],
                                stride=1)
    pooled = contrib.sequence_topk_avg_pooling(input=image, row=row, col=col, topks=[1, 3, 5], channel_num=5)
    assert image.shape == (-1, 1) and pooled.shape == (-1, 15) and pooled.lod_level == 1
    assert [list(param.shape) for param in default_main_program().all_parameters()] == [[10, 3, 10], [5, 27]]


def test_filters_start_as_documented_where_the_original_is_in_doubt():
    row = layers.data(name="row", shape=[1], lod_level=1)
    contrib.layers.var_conv_2d(row, row, row, 8, 500, 3, param_attr="filters")
    scope = Scope()
    Executor().run(default_startup_program(), scope=scope)
    assert scope.array("filters").std() == pytest.approx((2 / 72) ** 0.5, rel=0.02)  # its code leaves Xavier's


def texts(count, words):
    lengths = rng.integers(2, 6, count)
    return rng.integers(0, words, (lengths.sum(), 1)), lengths


def test_a_model_learns_which_texts_share_a_word():
    words, batch = 12, 64
    query, title = (layers.data(name=name, shape=[1], dtype="int64", lod_level=1) for name in ("query", "title"))
    label = layers.data(name="label", shape=[1], dtype="float32")
    one, other = (layers.embedding(text, size=[words, 12], param_attr="words") for text in (query, title))
    image, _ = contrib.layers.match_matrix_tensor(one, other, channel_num=2, act="tanh")
    image = contrib.layers.var_conv_2d(image, one, other, 2, 3, filter_size=[1, 1], act="tanh")
    best = contrib.layers.sequence_topk_avg_pooling(image, one, other, topks=[1, 2], channel_num=3)
    score = layers.fc(layers.sequence_pool(best, "max"), size=1)
    cost = layers.mean(layers.sigmoid_cross_entropy_with_logits(score, label))
    fluid.optimizer.Adam(learning_rate=0.02).minimize(cost)
    executor, costs = Executor(), []
    executor.run(default_startup_program())
    for _ in range(80):
        (left, lefts), (right, rights) = texts(batch, words), texts(batch, words)
        parts = [np.split(one, np.cumsum(lengths)[:-1]) for one, lengths in ((left, lefts), (right, rights))]
        shared = [[float(bool({*a.ravel()} & {*b.ravel()}))] for a, b in zip(*parts)]
        feed = {"query": sequences(left, lefts), "title": sequences(right, rights), "label": np.array(shared, "f4")}
        costs.append(executor.run(feed=feed, fetch_list=[cost])[0].item())
    assert np.mean(costs[-5:]) < np.mean(costs[:5]) * 0.7


def test_texts_of_other_widths_are_refused():
    x, y = layers.data(name="x", shape=[10], lod_level=1), layers.data(name="y", shape=[9], lod_level=1)
    with pytest.raises(UsageError, match="as many columns in x and y, got 10 and 9"):
        contrib.layers.match_matrix_tensor(x, y, 3)


def test_images_of_more_than_a_column_are_refused():
    x = layers.data(name="x", shape=[3, 4], lod_level=1)
    with pytest.raises(UsageError, match=r"var_conv_2d: input: expected rows of numbers.* got \[-1, 3, 4\]"):
        contrib.layers.var_conv_2d(x, x, x, 1, 1, 3)
