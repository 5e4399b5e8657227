"""Layers in their 2.x form, on given parameters, against their 1.x form."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import functional_dropout, functional_nn as functional, nn
from fleet_mpi.program.layers.data import data

rng = np.random.default_rng(0)
IMAGES = rng.normal(1, 2, (4, 3, 8, 8)).astype(np.float32)


def image():
    return data("image", [3, 8, 8])


def same(*pair):
    executor = Executor()
    executor.run(default_startup_program())
    one, other = executor.run(feed={"image": IMAGES}, fetch_list=list(pair))
    np.testing.assert_array_equal(one, other)


def parameter(name):
    return default_main_program().global_block().var(name)


def test_convolution_by_given_weights():
    made = nn.conv2d(image(), 4, 3, stride=2, padding=1)
    same(made, functional.conv2d(image(), parameter("conv2d_0.w_0"), parameter("conv2d_0.b_0"), 2, 1))


def test_transposed_convolution_by_given_weights():
    made = nn.conv2d_transpose(image(), 4, filter_size=3, stride=2)
    same(made, functional.conv2d_transpose(image(), parameter("conv2d_transpose_0.w_0"),
                                           parameter("conv2d_transpose_0.b_0"), 2))
    larger = functional.conv2d_transpose(image(), parameter("conv2d_transpose_0.w_0"), stride=2, output_padding=1)
    assert larger.shape[2:] == (18, 18) and made.shape[2:] == (17, 17)
    with pytest.raises(UsageError, match="output_padding or output_size"):
        functional.conv2d_transpose(image(), parameter("conv2d_transpose_0.w_0"), stride=2, output_padding=1,
                                    output_size=18)


def test_batch_norm_by_given_parameters_moves_the_given_statistics():
    made = nn.batch_norm(image())
    names = [f"batch_norm_0.{end}" for end in ("w_1", "w_2", "w_0", "b_0")]
    same(made, functional.batch_norm(image(), *map(parameter, names), training=True))
    moved = np.array(global_scope().find_var("batch_norm_0.w_1").get_tensor())
    np.testing.assert_allclose(moved, IMAGES.mean((0, 2, 3)) * (1 - 0.9 ** 2), rtol=1e-4)


def test_layer_norm_over_the_last_dimensions():
    made = nn.layer_norm(image(), begin_norm_axis=2)
    same(made, functional.layer_norm(image(), [8, 8], parameter("layer_norm_0.w_0"), parameter("layer_norm_0.b_0")))


@pytest.mark.parametrize("first, second", [
    (lambda x: nn.pool2d(x, 2, "max", 2), lambda x: functional.max_pool2d(x, 2)),
    (lambda x: nn.pool2d(x, 3, "avg", 2, 1), lambda x: functional.avg_pool2d(x, 3, 2, 1)),
    (lambda x: nn.adaptive_pool2d(x, 3, "avg"), lambda x: functional.adaptive_avg_pool2d(x, 3)),
    (lambda x: nn.adaptive_pool2d(x, 3, "max"), lambda x: functional.adaptive_max_pool2d(x, 3)),
    (lambda x: nn.softmax(x, axis=1), lambda x: functional.softmax(x, 1)),
    (lambda x: nn.log_softmax(x), lambda x: functional.log_softmax(x, dtype="float32")),
    (lambda x: nn.dropout(x, 0.3, is_test=True, dropout_implementation="upscale_in_train"),
     lambda x: functional_dropout.dropout(x, 0.3, training=False)),
])
def test_the_2x_form_gives_what_the_1x_form_gives(first, second):
    same(first(image()), second(image()))


def test_softmax_in_another_type():
    executor = Executor()
    made = executor.run(feed={"image": IMAGES}, fetch_list=[functional.softmax(image(), dtype="float64")])[0]
    assert made.dtype == np.float64
