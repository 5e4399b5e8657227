"""Networks of program/layers/nets.py."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import nets
from fleet_mpi.program.layers.data import data

rng = np.random.default_rng(0)


def run(out, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return np.asarray(executor.run(feed=feed, fetch_list=[out])[0])


def types():
    return [op.type for op in default_main_program().global_block().ops]


def test_a_group_of_convolutions_with_batch_norm_and_dropout():
    out = nets.img_conv_group(data("x", [3, 8, 8]), [4, 5], 2, conv_act="relu", conv_with_batchnorm=[True, False],
                              conv_batchnorm_drop_rate=[0.3, 0.0], pool_stride=2)
    assert types() == ["conv2d", "elementwise_add", "batch_norm", "relu", "dropout", "conv2d", "elementwise_add",
                       "relu", "pool2d"]
    assert run(out, x=rng.normal(size=(2, 3, 8, 8)).astype("f")).shape == (2, 5, 4, 4)
    with pytest.raises(UsageError, match="one conv_padding for each of 2"):
        nets.img_conv_group(data("x", [3, 8, 8]), [4, 5], 2, conv_padding=[1])


def test_a_gated_linear_unit():
    x = rng.normal(size=(3, 4)).astype(np.float32)
    made = run(nets.glu(data("x", [4])), x=x)
    np.testing.assert_allclose(made, x[:, :2] / (1 + np.exp(-x[:, 2:])), rtol=1e-5)
    with pytest.raises(UsageError, match="even"):
        nets.glu(data("odd", [3]))


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_equals_the_formula(heads):
    q, k, v = (rng.normal(size=(2, time, size)).astype(np.float32) for time, size in ((3, 4), (5, 4), (5, 6)))
    names = data("q", [3, 4]), data("k", [5, 4]), data("v", [5, 6])
    made = run(nets.scaled_dot_product_attention(*names, num_heads=heads), q=q, k=k, v=v)
    expected = np.empty((2, 3, 6), np.float32)
    for head in range(heads):
        a, b = slice(head * 4 // heads, (head + 1) * 4 // heads), slice(head * 6 // heads, (head + 1) * 6 // heads)
        scores = q[:, :, a] @ k[:, :, a].transpose(0, 2, 1) / np.sqrt(4 / heads)
        shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        expected[:, :, b] = shares @ v[:, :, b]
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_attention_with_heads_that_do_not_divide_is_refused():
    with pytest.raises(UsageError, match="multiples of num_heads 3"):
        nets.scaled_dot_product_attention(data("q", [3, 4]), data("k", [5, 4]), data("v", [5, 6]), num_heads=3)
