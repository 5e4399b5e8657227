"""Layers of program/layers/nn.py: names, defaults, freezing for tests, and a LeNet that learns."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward, gradients
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import loss, metric, nets, nn
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.optimizers.plain import SGD

rng = np.random.default_rng(0)


def image(channels=3, size=8):
    return data("image", [channels, size, size])


def pictures(count=4, channels=3, size=8):
    return rng.normal(1, 2, (count, channels, size, size)).astype(np.float32)


def started():
    executor = Executor()
    executor.run(default_startup_program())
    return executor


def value(name):
    return np.array(global_scope().find_var(name).get_tensor())


def mean_of(x):
    return single_op("mean", {"X": x})


def last_op(type):
    return [op for op in default_main_program().global_block().ops if op.type == type][-1]


def test_conv2d_names_shapes_and_initial_weights_are_the_originals():
    out = nn.conv2d(image(), num_filters=64, filter_size=5, act="relu")
    names = {param.name: tuple(param.shape) for param in default_main_program().all_parameters()}
    assert names == {"conv2d_0.w_0": (64, 3, 5, 5), "conv2d_0.b_0": (64,)}
    assert out.name == "conv2d_0.tmp_2" and out.shape == (-1, 64, 4, 4)
    started()
    assert value("conv2d_0.w_0").std() == pytest.approx(math.sqrt(2 / (25 * 3)), rel=0.05)
    assert not value("conv2d_0.b_0").any()


def test_conv2d_with_groups_keeps_the_initial_spread_of_all_channels():
    nn.conv2d(image(4), 128, 3, groups=2, bias_attr=False)
    assert [tuple(param.shape) for param in default_main_program().all_parameters()] == [(128, 2, 3, 3)]
    started()
    assert value("conv2d_0.w_0").std() == pytest.approx(math.sqrt(2 / (9 * 4)), rel=0.05)


@pytest.mark.parametrize("padding, numbers, algorithm", [
    (1, [1, 1], "EXPLICIT"), ([1, 2], [1, 2], "EXPLICIT"), ((0, 1, 2, 3), [0, 1, 2, 3], "EXPLICIT"),
    ([[0, 0], [0, 0], [1, 2], [3, 0]], [1, 2, 3, 0], "EXPLICIT"), ("same", [0, 0], "SAME"),
    ("VALID", [0, 0], "VALID")])
def test_padding_takes_all_forms_of_the_original(padding, numbers, algorithm):
    nn.conv2d(image(), 2, 3, padding=padding)
    op = last_op("conv2d")
    assert op.attr("paddings") == numbers and op.attr("padding_algorithm") == algorithm


def test_a_convolution_per_channel_is_named_depthwise_only_without_cudnn():
    nn.conv2d(image(), 6, 3, groups=3, use_cudnn=False)
    nn.conv2d(image(), 6, 3, groups=3)
    assert [op.type for op in default_main_program().global_block().ops if "conv" in op.type] == [
        "depthwise_conv2d", "conv2d"]
    assert default_main_program().all_parameters()[0].name == "conv2d_0.w_0"


def test_nhwc_gives_what_nchw_gives():
    x = image()
    weights, moved = ParamAttr(name="w"), data("moved", [8, 8, 3])
    first = nn.pool2d(nn.conv2d(x, 4, 3, param_attr=weights, bias_attr="b"), 2, pool_stride=2)
    second = nn.pool2d(nn.conv2d(moved, 4, 3, param_attr=weights, bias_attr="b", data_format="NHWC"), 2,
                       pool_stride=2, data_format="NHWC")
    given = pictures()
    one, other = started().run(feed={"image": given, "moved": np.moveaxis(given, 1, -1)}, fetch_list=[first, second])
    np.testing.assert_allclose(np.moveaxis(np.asarray(one), 1, -1), other, rtol=1e-4, atol=1e-5)


def test_a_transposed_convolution_finds_its_filter_from_the_output():
    out = nn.conv2d_transpose(image(), 5, output_size=17, stride=2)
    assert default_main_program().all_parameters()[0].shape == (3, 5, 3, 3) and out.shape == (-1, 5, 17, 17)
    with pytest.raises(UsageError, match="output_size"):
        nn.conv2d_transpose(image(), 5)


@pytest.mark.parametrize("build, shape", [
    (lambda x: nn.pool2d(x, 2, pool_stride=2), (-1, 3, 4, 4)),
    (lambda x: nn.pool2d(x, global_pooling=True, pool_type="avg"), (-1, 3, 1, 1)),
    (lambda x: nn.pool2d(x, 3, pool_stride=2, ceil_mode=True), (-1, 3, 4, 4)),
    (lambda x: nn.adaptive_pool2d(x, [3, 2], "avg"), (-1, 3, 3, 2)),
    (lambda x: nn.conv2d(x, 2, [3, 1], stride=[2, 1], dilation=2), (-1, 2, 2, 8)),
])
def test_shapes_are_known_when_the_program_is_built(build, shape):
    out = build(image())
    assert out.shape == shape
    assert started().run(feed={"image": pictures()}, fetch_list=[out])[0].shape == (4,) + shape[1:]


def test_three_dimensions():
    clip = data("clip", [2, 4, 4, 4])
    out = nn.pool3d(nn.conv3d(clip, 3, 3, padding=1), 2, "avg", 2)
    grown = nn.conv3d_transpose(nn.adaptive_pool3d(out, 1, "max"), 2, filter_size=2)
    assert out.shape == (-1, 3, 2, 2, 2) and grown.shape == (-1, 2, 2, 2, 2)
    made = started().run(feed={"clip": rng.normal(size=(2, 2, 4, 4, 4)).astype("float32")}, fetch_list=[grown])[0]
    assert made.shape == (2, 2, 2, 2, 2)


@pytest.mark.parametrize("call, words", [
    (lambda x: nn.pool2d(x), "pool_size"),
    (lambda x: nn.conv2d(x, 4, 3, groups=2), "multiples of groups 2"),
    (lambda x: nn.conv2d(x, 4, [3, 3, 3]), "filter_size"),
    (lambda x: nn.conv2d(x, 4, 3, padding="FULL"), "'SAME' or 'VALID'"),
    (lambda x: nn.conv2d(x, 4, 3, padding=[1, 1, 1]), "1, 2 or 4 numbers"),
    (lambda x: nn.conv2d(x, 4, 3, data_format="HWC"), "NCHW or NHWC"),
    (lambda x: nn.adaptive_pool2d(x, 2, "avg", require_index=True), "those of maxima"),
])
def test_arguments_that_mean_nothing_are_refused(call, words):
    with pytest.raises(UsageError, match=words):
        call(image())


def test_batch_norm_names_values_and_running_statistics():
    out = nn.batch_norm(image(), momentum=0.8)
    params = {param.name: param.trainable for param in default_main_program().all_parameters()}
    assert params == {"batch_norm_0.w_0": True, "batch_norm_0.b_0": True, "batch_norm_0.w_1": False,
                      "batch_norm_0.w_2": False}
    assert default_main_program().global_block().var("batch_norm_0.w_1").stop_gradient
    given, executor = pictures(), started()
    assert value("batch_norm_0.w_2").tolist() == [1, 1, 1]
    made = executor.run(feed={"image": given}, fetch_list=[out])[0]
    np.testing.assert_allclose(np.mean(made, axis=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(value("batch_norm_0.w_1"), 0.2 * given.mean((0, 2, 3)), rtol=1e-4)
    np.testing.assert_allclose(value("batch_norm_0.w_2"), 0.8 + 0.2 * given.var((0, 2, 3)), rtol=1e-4)


def test_batch_norm_takes_given_names_and_parameters_that_do_not_train():
    nn.batch_norm(image(), param_attr=False, bias_attr="offset", moving_mean_name="m", moving_variance_name="v")
    params = {param.name: param.trainable for param in default_main_program().all_parameters()}
    assert params == {"batch_norm_0.w_0": False, "offset": True, "m": False, "v": False}


def test_training_moves_scale_and_offset_but_only_the_batch_moves_the_statistics():
    cost = mean_of(nn.batch_norm(image(), act="relu"))
    pairs = append_backward(cost)
    assert sorted(param.name for param, _ in pairs) == ["batch_norm_0.b_0", "batch_norm_0.w_0"]


def test_clone_for_test_freezes_batch_norm_and_dropout():
    normal = nn.batch_norm(image())
    out = nn.dropout(normal, 0.4)
    SGD(0.1).minimize(mean_of(out))
    frozen = default_main_program().clone(for_test=True)
    executor, given = started(), pictures()
    executor.run(feed={"image": given})
    mean, variance = value("batch_norm_0.w_1"), value("batch_norm_0.w_2")
    scale, offset = value("batch_norm_0.w_0"), value("batch_norm_0.b_0")
    expected = (given - mean[:, None, None]) / np.sqrt(variance + 1e-5)[:, None, None]
    expected = expected * scale[:, None, None] + offset[:, None, None]
    for _ in range(2):
        one, other = executor.run(frozen, feed={"image": given}, fetch_list=[normal.name, out.name])
        np.testing.assert_allclose(one, expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(other, np.asarray(one) * 0.6, rtol=1e-6)
    assert value("batch_norm_0.w_1").tolist() == mean.tolist()


def test_dropout_by_seed():
    free, fixed = nn.dropout(image(), 0.5), nn.dropout(image(), 0.5, seed=7)
    ops = [op for op in default_main_program().global_block().ops if op.type == "dropout"]
    assert [(op.attr("fix_seed"), op.attr("seed")) for op in ops] == [(False, 0), (True, 7)]
    executor, given = started(), pictures()
    first, second = (executor.run(feed={"image": given}, fetch_list=[free, fixed]) for _ in range(2))
    assert (first[0] != second[0]).any() and (first[1] == second[1]).all()


def test_layer_norm_names_and_parts_left_out():
    x = data("x", [3, 4])
    out = nn.layer_norm(x, begin_norm_axis=2)
    nn.layer_norm(x, scale=False, shift=False)
    shapes = {param.name: tuple(param.shape) for param in default_main_program().all_parameters()}
    assert shapes == {"layer_norm_0.w_0": (4,), "layer_norm_0.b_0": (4,)}
    made = np.asarray(started().run(feed={"x": rng.normal(3, 2, (5, 3, 4)).astype("f")}, fetch_list=[out])[0])
    np.testing.assert_allclose(made.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(made.std(-1), 1, atol=1e-2)


def test_a_lenet_learns_eight_pictures_by_heart():
    picture, label = data("image", [1, 28, 28]), data("label", [1], dtype="int64")
    made = nets.simple_img_conv_pool(picture, 6, 5, 2, 2, conv_padding=2, act="relu")
    made = nn.batch_norm(made)
    made = nets.simple_img_conv_pool(made, 16, 5, 2, 2, act="relu")
    share = fc(made, 10, act="softmax")
    cost, hits = mean_of(loss.cross_entropy(share, label)), metric.accuracy(share, label)
    SGD(0.1).minimize(cost)
    default_main_program().random_seed = default_startup_program().random_seed = 5
    executor = started()
    feed = {"image": rng.normal(size=(8, 1, 28, 28)).astype("float32"), "label": rng.integers(0, 10, (8, 1))}
    results = [executor.run(feed=feed, fetch_list=[cost, hits]) for _ in range(15)]
    assert results[0][0][0] > 1.5 and results[-1][0][0] < 0.1 and results[-1][1][0] == 1


def test_a_dropout_that_is_computed_again_for_the_gradient_drops_the_same_elements():
    x = data("x", [6])
    hidden = nn.dropout(fc(x, 5, act="relu"), 0.5)
    cost = mean_of(fc(hidden, 1))
    plain = default_main_program().clone()
    default_main_program().random_seed = plain.random_seed = 4
    for program, checkpoints in ((default_main_program(), [cost]), (plain, None)):
        append_backward(program.global_block().var(cost.name), checkpoints=checkpoints)
    assert any("@RECOMPUTED" in name for name in default_main_program().global_block().vars)
    executor, feed = started(), {"x": rng.normal(size=(7, 6)).astype("f")}
    one, other = (executor.run(program, feed=feed, fetch_list=["fc_0.w_0@GRAD"])[0]
                  for program in (default_main_program(), plain))
    np.testing.assert_array_equal(one, other)


def test_an_empty_batch_gives_a_bias_no_gradient():
    x = data("x", [2, 5, 5])
    out = nn.conv2d(x, num_filters=3, filter_size=3)
    bias = default_main_program().all_parameters()[1]
    grad, = gradients([out], [bias])
    executor = Executor()
    executor.run(default_startup_program())
    got, = executor.run(feed={"x": np.zeros((0, 2, 5, 5), "float32")}, fetch_list=[grad])
    assert got.tolist() == [0, 0, 0]
