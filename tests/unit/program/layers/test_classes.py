"""The classes of ``paddle.nn``: parameters with the original's names, shapes and first values; values as numpy says."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import classes
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.optimizers.plain import SGD

RNG = np.random.default_rng(0)


def run(out, **feed):
    """The value of a variable, after the startup program."""
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(default_main_program(), feed=feed, fetch_list=[out])[0]


def value(name):
    """A parameter's value."""
    return global_scope().array(name)


def images(shape=(2, 3, 6, 5)):
    """(a variable to feed, its value)."""
    return static_data("x", [None, *shape[1:]]), RNG.standard_normal(shape).astype("float32")


def test_linear_multiplies_the_last_dimension():
    layer, x = classes.Linear(5, 4), RNG.standard_normal((2, 3, 5)).astype("float32")
    found = run(layer(static_data("x", [None, 3, 5])), x=x)
    assert [param.name for param in layer.parameters()] == ["linear_0.w_0", "linear_0.b_0"]
    np.testing.assert_allclose(found, x @ value("linear_0.w_0") + value("linear_0.b_0"), rtol=1e-5, atol=1e-6)
    assert np.abs(value("linear_0.w_0")).max() <= np.sqrt(6 / 9) and not value("linear_0.b_0").any()


def test_linear_takes_attributes_and_no_bias():
    layer = classes.Linear(2, 2, weight_attr=ParamAttr(name="mine", initializer=Constant(3.0)), bias_attr=False)
    found = run(layer(static_data("x", [None, 2])), x=np.ones((1, 2), "float32"))
    assert layer.bias is None and layer.weight.name == "mine" and found.tolist() == [[6.0, 6.0]]


@pytest.mark.parametrize("sparse", (False, True))
def test_embedding_looks_rows_up_and_only_they_learn(sparse):
    layer = classes.Embedding(6, 3, padding_idx=-1, sparse=sparse)
    out = layer(static_data("ids", [None, 2], "int64"))
    ids = np.array([[0, 4], [5, 0]])
    SGD(1.0).minimize(classes.MSELoss("sum")(out, static_data("target", [None, 2, 3])))
    executor = Executor()
    executor.run(default_startup_program())
    before = value("embedding_0.w_0").copy()
    found, = executor.run(feed={"ids": ids, "target": np.zeros((2, 2, 3), "float32")}, fetch_list=[out])
    expected = before[ids]
    expected[1, 0] = 0  # padding
    np.testing.assert_allclose(found, expected)
    moved = np.abs(value("embedding_0.w_0") - before).sum(1) > 0
    assert moved.tolist() == [True, False, False, False, True, False]


def test_an_impossible_padding_row_is_refused():
    with pytest.raises(UsageError, match="padding_idx 6 is outside of the table's 6 rows"):
        classes.Embedding(6, 3, padding_idx=6)


@pytest.mark.parametrize("kind", (classes.BatchNorm, classes.BatchNorm2D))
def test_batch_norm_uses_the_batch_in_training_and_the_running_moments_otherwise(kind):
    x, array = images((4, 3, 5, 5))
    layer = kind(3)
    found = run(layer(x), x=array)
    mean, variance = array.mean((0, 2, 3)), array.var((0, 2, 3))
    np.testing.assert_allclose(found, (array - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5),
                               atol=1e-4)
    name = layer.full_name()
    assert [param.name for param in layer.parameters()] == [f"{name}.w_0", f"{name}.b_0"]
    assert [held.name for held in layer.buffers()] == [f"{name}.w_1", f"{name}.w_2"]
    np.testing.assert_allclose(value(f"{name}.w_1"), 0.1 * mean, rtol=1e-4, atol=1e-6)
    layer.eval()
    frozen = Executor().run(default_main_program(), feed={"x": array}, fetch_list=[layer(x)])[0]
    assert not np.allclose(frozen, found)
    assert sorted(layer.state_dict()) == ["_mean", "_variance", "bias", "weight"]


def test_batch_norm_of_1x_has_an_activation_and_names():
    layer = classes.BatchNorm(3, act="relu", moving_mean_name="kept_mean", moving_variance_name="kept_variance")
    x, array = images()
    assert run(layer(x), x=array).min() == 0
    assert [held.name for held in layer.buffers()] == ["kept_mean", "kept_variance"]


def test_batch_norm_without_scale_and_shift_never_learns_them():
    layer = classes.BatchNorm2D(3, weight_attr=False, bias_attr=False)
    assert not any(param.trainable for param in layer.parameters())


def test_layer_norm_normalises_rows():
    layer, x = classes.LayerNorm([3, 4]), RNG.standard_normal((2, 3, 4)).astype("float32")
    found = run(layer(static_data("x", [None, 3, 4])), x=x)
    flat = x.reshape(2, -1)
    expected = (flat - flat.mean(1, keepdims=True)) / np.sqrt(flat.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found.reshape(2, -1), expected, atol=1e-5)


@pytest.mark.parametrize("layer, expected", (
    (classes.MaxPool2D(2), lambda x: x[:, :, :6, :4].reshape(2, 3, 3, 2, 2, 2).max((3, 5))),
    (classes.AvgPool2D(2, stride=2), lambda x: x[:, :, :6, :4].reshape(2, 3, 3, 2, 2, 2).mean((3, 5))),
    (classes.AdaptiveAvgPool2D(1), lambda x: x.mean((2, 3), keepdims=True)),
    (classes.AdaptiveMaxPool2D(1), lambda x: x.max((2, 3), keepdims=True)),
    (classes.ReLU(), lambda x: np.maximum(x, 0)), (classes.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    (classes.Tanh(), np.tanh), (classes.LeakyReLU(), lambda x: np.where(x > 0, x, 0.01 * x)),
    (classes.Softmax(axis=1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    (classes.Flatten(), lambda x: x.reshape(2, -1)), (classes.Flatten(0, 1), lambda x: x.reshape(6, 6, 5)),
), ids=lambda one: type(one).__name__ if isinstance(one, classes.Layer) else "")
def test_layers_without_parameters_are_their_functions(layer, expected):
    x, array = images()
    np.testing.assert_allclose(run(layer(x), x=array), expected(array), rtol=1e-5, atol=1e-6)


def test_gelu_is_near_its_definition():
    x = np.array([[-1.0, 0.0, 2.0]], "float32")
    np.testing.assert_allclose(run(classes.GELU()(static_data("x", [None, 3])), x=x), [[-0.15866, 0, 1.9545]],
                               atol=1e-4)


def test_adaptive_pooling_takes_channels_last():
    out = classes.AdaptiveAvgPool2D(1, data_format="NHWC")(static_data("x", [None, 4, 4, 3]))
    assert out.shape == (-1, 1, 1, 3)


def test_dropout_drops_in_training_only():
    layer = classes.Dropout(0.5)
    x = static_data("x", [None, 1000])
    dropped = run(layer(x), x=np.ones((1, 1000), "float32"))
    assert set(np.unique(dropped)) == {0.0, 2.0}
    layer.eval()
    assert run(layer(x), x=np.ones((1, 1000), "float32")).min() == 1


def test_losses_reduce_to_one_number():
    guess, label = static_data("guess", [None, 3]), static_data("label", [None, 1], "int64")
    logits, classes_ = RNG.standard_normal((4, 3)).astype("float32"), np.array([[0], [2], [1], [1]])
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = -np.log(chances[np.arange(4), classes_[:, 0]])
    mean = run(classes.CrossEntropyLoss()(guess, label), guess=logits, label=classes_)
    assert mean[0] == pytest.approx(expected.mean(), rel=1e-5)
    each = run(classes.CrossEntropyLoss(reduction="none")(guess, label), guess=logits, label=classes_)
    np.testing.assert_allclose(each[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("layer, formula", (
    (classes.MSELoss(), lambda a, b: ((a - b) ** 2).mean()), (classes.L1Loss("sum"), lambda a, b: np.abs(a - b).sum()),
    (classes.BCELoss(), lambda a, b: -(b * np.log(a) + (1 - b) * np.log(1 - a)).mean()),
    (classes.BCEWithLogitsLoss(), lambda a, b: (np.log1p(np.exp(a)) - b * a).mean())),
    ids=lambda one: type(one).__name__ if isinstance(one, classes.Layer) else "")
def test_losses_of_two_arrays(layer, formula):
    one, other = RNG.uniform(0.1, 0.9, (2, 3, 2)).astype("float32")
    found = run(layer(static_data("one", [None, 2]), static_data("other", [None, 2])), one=one, other=other)
    assert found[0] == pytest.approx(formula(one, other), rel=1e-4)
