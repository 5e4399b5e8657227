"""Layers of program/layers/click.py and metric_bundle.py: what is built, and how a click model uses them."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.data.page_views import rank_matrix
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, create_lod_tensor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import click
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.loss import log_loss
from fleet_mpi.program.layers.metric_bundle import ctr_metric_bundle
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import SGD, Adam

rng = np.random.default_rng(0)
PLACE = fluid.CPUPlace()


def started():
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    return executor, scope


def test_data_norm_learns_the_columns_and_a_test_program_leaves_them():
    y = click.data_norm(data("x", [2]), name="dn", param_attr={"batch_size": 1.0, "batch_square": 1.0})
    test = default_main_program().clone(for_test=True)
    SGD(0.1).minimize(mean(fc(y, 1)))
    executor, scope = started()
    for _ in range(60):
        feed = {"x": (rng.normal(size=(50, 2)) * [2, 0.5] + [10, -3]).astype("float32")}
        executor.run(feed=feed, fetch_list=[y], scope=scope)
    assert scope.array("dn.batch_size") == pytest.approx(3001, rel=1e-4)
    found, = executor.run(test, feed, [y], scope=scope)
    np.testing.assert_allclose(found.mean(0), 0, atol=0.5)
    np.testing.assert_allclose(found.std(0), 1, atol=0.5)
    assert scope.array("dn.batch_size") == pytest.approx(3001, rel=1e-4), "the test program has added nothing"


def test_data_norm_starts_like_the_original_and_can_scale_and_shift():
    y = click.data_norm(data("x", [3]), act="relu", enable_scale_and_shift=True)
    block = default_main_program().global_block()
    assert y.shape == (-1, 3) and [op.type for op in block.ops] == ["data_norm", "relu"]
    made = block.ops[0]
    assert [block.var(made.input(slot)[0]).name for slot in ("BatchSize", "BatchSum", "BatchSquareSum")] == [
        "data_norm_0.batch_size", "data_norm_0.batch_sum", "data_norm_0.batch_square_sum"]
    _, scope = started()
    assert scope.array("data_norm_0.batch_size").tolist() == [1e4] * 3
    assert [param.name for param in block.all_parameters() if param.trainable] == ["data_norm_0.scale_w",
                                                                                   "data_norm_0.bias"]


def test_sums_over_all_workers_are_refused():
    with pytest.raises(NotBuilt, match="sync_stats=True"):
        click.data_norm(data("x", [3]), sync_stats=True)


def test_a_model_with_counts_learns_from_rows_that_have_the_tag():
    x, label = data("x", [4]), data("label", [1])
    tags, wanted = data("tags", [1], dtype="int64", lod_level=1), data("wanted", [1], dtype="int64")
    counted = click.continuous_value_model(x, fluid.layers.fill_constant_batch_size_like(x, [-1, 2], "float32", 1.0))
    hidden, weight = click.filter_by_instag(counted, tags, wanted, is_lod=False)
    kept, _ = click.filter_by_instag(label, tags, wanted, is_lod=False)
    loss = mean(log_loss(fc(hidden, 1, act="sigmoid"), kept) * weight)
    Adam(0.1).minimize(loss)
    executor, scope = started()
    costs = []
    for _ in range(80):
        rows = rng.uniform(0, 3, (16, 4)).astype("float32")
        marks = rng.integers(0, 2, 16)
        clicked = np.where(marks == 1, rows[:, 2] > 1.5, rows[:, 2] < 1.5)  # the other rows would teach the opposite
        feed = {"x": rows, "label": clicked.reshape(-1, 1).astype("float32"), "wanted": np.array([[1]]),
                "tags": create_lod_tensor(marks.reshape(-1, 1), [[1] * 16], PLACE)}
        costs.append(executor.run(feed=feed, fetch_list=[loss], scope=scope)[0].item())
    assert np.mean(costs[-5:]) < np.mean(costs[:5]) / 2


def test_hashes_choose_rows_of_a_table():
    ids = data("ids", [2], dtype="int64", lod_level=1)
    found = click.hash(ids, hash_size=1000, num_hash=2)
    assert found.shape == (-1, 2, 1) and found.stop_gradient
    value, = Executor().run(feed={"ids": create_lod_tensor(np.array([[1, 2], [3, 4]]), [[2]], PLACE)},
                            fetch_list=[found], return_numpy=False)
    assert np.array(value)[..., 0].tolist() == [[524, 896], [640, 562]] and value.recursive_sequence_lengths() == [[2]]


def test_parts_of_columns_and_other_orders_of_rows():
    a, b = data("a", [3]), data("b", [3])
    made = [click.partial_concat([a, b], 1, 2), click.partial_sum([a, b], start_index=-1),
            click.shuffle_batch(a, seed=5)]
    one, other = np.arange(6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")
    joined, summed, shuffled = Executor().run(feed={"a": one, "b": other}, fetch_list=made)
    assert joined.tolist() == [[1, 2, 1, 1], [4, 5, 1, 1]] and summed.tolist() == [[3], [6]]
    assert sorted(shuffled.tolist()) == one.tolist()


def test_pooled_rows_of_a_table():
    ids = data("ids", [1], dtype="int64", lod_level=1)
    pooled = click.fused_embedding_seq_pool(ids, [10, 4], is_sparse=True, param_attr="table")
    executor, scope = started()
    found, = executor.run(feed={"ids": create_lod_tensor(np.array([[1], [2], [5]]), [[2, 1]], PLACE)},
                          fetch_list=[pooled], scope=scope)
    table = scope.array("table")
    np.testing.assert_allclose(found, [table[1] + table[2], table[5]], rtol=1e-6)


def test_the_bundle_adds_up_over_batches():
    sums = ctr_metric_bundle(data("p", [1]), data("label", [1]))
    executor, scope = started()
    p, label = rng.uniform(size=(8, 1)).astype("float32"), rng.integers(0, 2, (8, 1)).astype("float32")
    for part in (slice(0, 5), slice(5, 8)):
        found = executor.run(feed={"p": p[part], "label": label[part]}, fetch_list=list(sums), scope=scope)
    wanted = [((p - label) ** 2).sum(), np.abs(p - label).sum(), p.sum(), (1 / (1 + np.exp(-p))).sum(), label.sum(), 8]
    np.testing.assert_allclose(np.concatenate(found), wanted, rtol=1e-5)


def attended(**changes):
    arguments = dict(input=fluid.data(name="input", shape=[None, 2], dtype="float32"),
                     rank_offset=fluid.data(name="rank_offset", shape=[None, 7], dtype="int32"),
                     rank_param_shape=[18, 3], rank_param_attr=fluid.ParamAttr(
                         learning_rate=1.0, name="ubm_rank_param.w_0", initializer=fluid.initializer.Xavier(
                             uniform=False)), max_rank=3, max_size=0)
    return click.rank_attention(**{**arguments, **changes})


def test_a_model_with_attention_by_rank_learns_who_stands_above():
    x = fluid.layers.data(name="input", shape=[2], dtype="float32")
    out = attended(input=x)
    assert out.shape == (-1, 3)
    label = data("label", [1])
    loss = mean(fluid.layers.sigmoid_cross_entropy_with_logits(fc(out, 1), label))
    Adam(0.05).minimize(loss)
    executor, scope = started()
    costs = []
    for _ in range(60):
        values = rng.normal(size=(60, 2)).astype("float32")
        offset = rank_matrix(np.full(60, 222), np.tile([1, 2, 3], 20), np.full(20, 3))
        above = values.reshape(20, 3, 2)[:, 0, 0].repeat(3)  # a click, if the first of the view is large
        feed = {"input": values, "rank_offset": offset, "label": (above > 0).astype("float32").reshape(-1, 1)}
        costs.append(executor.run(feed=feed, fetch_list=[loss], scope=scope)[0].item())
    assert np.mean(costs[-5:]) < np.mean(costs[:5]) / 2


@pytest.mark.parametrize("changes, text", [
    ({"rank_param_shape": [12, 3]}, r"rank_param_shape: expected \[3 x 3 x 2 = 18, any\], got \[12, 3\]"),
    ({"rank_offset": np.zeros((4, 7))}, "'rank_offset' must be a variable")])
def test_attention_by_rank_refuses_what_does_not_fit(changes, text):
    with pytest.raises(UsageError, match=text):
        attended(**changes)
