"""``paddle.nn.functional`` and ``paddle.static.nn``: adapters to the layers, with the argument lists of 2.x."""

import numpy as np
import pytest

from fleet_mpi import paddle

F = paddle.nn.functional
X = np.random.default_rng(0).standard_normal((2, 5)).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


CASES = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)), "sigmoid": (F.sigmoid, sigmoid), "tanh": (F.tanh, np.tanh),
    "softmax": (F.softmax, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "log_softmax": (F.log_softmax, lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
    "leaky_relu": (F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "swish": (F.swish, lambda x: x * sigmoid(x)), "silu": (F.silu, lambda x: x * sigmoid(x)),
    "softplus": (lambda x: F.softplus(x, beta=2), lambda x: np.log1p(np.exp(2 * x)) / 2),
    "log_sigmoid": (F.log_sigmoid, lambda x: np.log(sigmoid(x))),
    "normalize": (F.normalize, lambda x: x / np.sqrt((x ** 2).sum(1, keepdims=True))),
    "normalize by the first norm": (lambda x: F.normalize(x, p=1), lambda x: x / np.abs(x).sum(1, keepdims=True)),
    "normalize by the largest": (lambda x: F.normalize(x, p=np.inf, axis=0), lambda x: x / np.abs(x).max(0)),
    "dropout for inference": (lambda x: F.dropout(x, 0.5, training=False), lambda x: x),
    "label_smooth": (lambda x: F.label_smooth(x, epsilon=0.1), lambda x: 0.9 * x + 0.1 / 5),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_computes_what_numpy_does(name):
    layer, definition = CASES[name]
    found, = paddle.static.Executor().run(feed={"x": X}, fetch_list=[layer(paddle.static.data("x", [None, 5]))])
    np.testing.assert_allclose(found, definition(X), rtol=1e-4, atol=1e-6)


def test_class_numbers_become_rows():
    out = F.one_hot(paddle.static.data("ids", [None], "int64"), 3)
    assert paddle.static.Executor().run(feed={"ids": [2, 0]}, fetch_list=[out])[0].tolist() == [[0, 0, 1], [1, 0, 0]]


def test_log_loss_is_as_the_models_need_it():
    guess, label = paddle.static.data("guess", [None, 1]), paddle.static.data("label", [None, 1])
    found, = paddle.static.Executor().run(feed={"guess": [[0.25]], "label": [[1.0]]},
                                          fetch_list=[F.log_loss(guess, label)])
    assert found[0, 0] == pytest.approx(-np.log(0.2501))


def test_fc_takes_the_keywords_of_2x():
    out = paddle.static.nn.fc(x=paddle.static.data("x", [None, 5]), size=3, weight_attr=paddle.ParamAttr(name="w"),
                              bias_attr=False, activation="relu")
    assert out.shape == (-1, 3) and [param.name for param in out.program.all_parameters()] == ["w"]
    assert out.op.type == "relu"


@pytest.mark.parametrize("make, values", (
    (lambda: paddle.nn.initializer.Constant(2.0), lambda x: (x == 2).all()),
    (lambda: paddle.nn.initializer.Normal(mean=3.0, std=0.1), lambda x: abs(x.mean() - 3) < 0.05),
    (lambda: paddle.nn.initializer.TruncatedNormal(std=0.1), lambda x: 0 < np.abs(x).max() <= 0.2),
    (lambda: paddle.nn.initializer.Uniform(2.0, 3.0), lambda x: 2 <= x.min() and x.max() <= 3),
    (lambda: paddle.nn.initializer.XavierUniform(), lambda x: np.abs(x).max() <= np.sqrt(6 / 50)),
    (lambda: paddle.nn.initializer.XavierNormal(fan_in=1, fan_out=1), lambda x: 0.8 < x.std() < 1.2),
    (lambda: paddle.nn.initializer.KaimingUniform(), lambda x: np.abs(x).max() <= np.sqrt(6 / 20)),
    (lambda: paddle.nn.initializer.KaimingNormal(fan_in=2), lambda x: 0.8 < x.std() < 1.2),
    (lambda: paddle.nn.initializer.Assign(np.arange(600).reshape(20, 30)), lambda x: x[1, 2] == 32)))
def test_initializers_of_2x_draw_as_they_say(make, values):
    paddle.create_parameter([20, 30], "float32", attr=paddle.ParamAttr(name="w", initializer=make()))
    paddle.static.Executor().run(paddle.static.default_startup_program())
    assert values(np.array(paddle.static.global_scope().find_var("w").get_tensor()))


@pytest.mark.parametrize("decay, moved", ((paddle.regularizer.L2Decay(0.5), 2 * 0.5),
                                          (paddle.regularizer.L1Decay(coeff=0.5), 0.5)))
def test_regularizers_of_2x_decay_by_their_coefficient(decay, moved):
    weight = paddle.create_parameter([1], "float32", attr=paddle.ParamAttr(
        name="w", initializer=paddle.nn.initializer.Constant(2.0)))
    paddle.optimizer.SGD(learning_rate=1.0, weight_decay=decay).minimize(paddle.sum(weight * 0.0))
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    exe.run(paddle.static.default_main_program())
    assert np.array(paddle.static.global_scope().find_var("w").get_tensor())[0] == pytest.approx(2 - moved)
