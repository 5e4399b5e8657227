"""Layers of program/layers/normalization.py: parameters, defaults and documented forms."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import normalization as layers
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.nn import batch_norm
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.layers.tensor import create_parameter

PICTURES = np.random.default_rng(0).normal(1, 2, (2, 8, 4, 4)).astype("float32")


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def test_groups_and_channels_have_mean_0_and_variance_1():
    image = data("image", [8, 4, 4])
    groups, channels = layers.group_norm(image, groups=4), layers.instance_norm(image)
    found = run(groups, channels, image=PICTURES)
    for value, rows in zip(found, (8, 16)):
        value = value.reshape(rows, -1)
        np.testing.assert_allclose(value.mean(1), 0, atol=1e-5)
        np.testing.assert_allclose(value.var(1), 1, atol=1e-4)


def test_scale_and_bias_are_parameters_of_the_channels_unless_their_attribute_is_false():
    image = data("image", [4, 4, 8])
    layers.group_norm(image, 2, act="relu", data_layout="NHWC")
    layers.instance_norm(data("other", [3, 2, 2]), param_attr=False, bias_attr=False)
    assert [(one.name, one.shape) for one in default_main_program().all_parameters()] == [
        ("group_norm_0.w_0", (8,)), ("group_norm_0.b_0", (8,))]
    assert default_main_program().global_block().ops[-2].type == "relu"


def test_a_weight_is_divided_by_its_largest_singular_value_and_its_vectors_are_not_trained():
    weight = create_parameter([4, 6], "float32", name="weight")
    out = layers.spectral_norm(weight, dim=0, power_iters=100)
    pairs = append_backward(mean(out))
    assert [param.name for param, _ in pairs] == ["weight"]
    value, normal = run(weight, out)
    np.testing.assert_allclose(normal, value / np.linalg.norm(value, 2), rtol=1e-4)


def test_neighbouring_channels():
    image = data("image", [8, 4, 4])
    out, = run(layers.lrn(image, n=3, k=2.0, alpha=0.1, beta=0.5), image=PICTURES)
    base = 2 + 0.1 * (PICTURES[:, 1:4] ** 2).sum(1)
    np.testing.assert_allclose(out[:, 2], PICTURES[:, 2] / np.sqrt(base), rtol=1e-5)


def test_batch_norm_with_its_activation():
    image = data("image", [8, 4, 4])
    plain, bent = batch_norm(image), layers.inplace_abn(image, act="leaky_relu", act_alpha=0.1)
    one, other = run(plain, bent, image=PICTURES)
    np.testing.assert_allclose(other, np.where(one > 0, one, 0.1 * one), rtol=1e-6)
    with pytest.raises(UsageError, match="inplace_abn: expected act"):
        layers.inplace_abn(image, act="relu")


@pytest.mark.parametrize("layout, axis", [("NCHW", 1), ("NHWC", 3)])
def test_channels_are_scaled_and_shifted_by_given_variables(layout, axis):
    image, scale, bias = (static_data(name, shape) for name, shape in (
        ("image", [2, 4, 4, 4]), ("scale", [4]), ("bias", [4])))
    out = layers.affine_channel(image, scale, bias, layout, act="relu")
    fed = dict(image=PICTURES[:, :4], scale=np.arange(4, dtype="float32"), bias=np.ones(4, "float32"))
    shape = [-1 if i == axis else 1 for i in range(4)]
    want = np.maximum(fed["image"] * fed["scale"].reshape(shape) + 1, 0)
    np.testing.assert_allclose(run(out, **fed)[0], want, rtol=1e-6)
