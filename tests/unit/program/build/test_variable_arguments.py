"""Arguments that may be variables, in the layers that take them, planned (constants) and interpreted (fed)."""

import numpy as np
import pytest

from fleet_mpi import fluid, paddle
from fleet_mpi.errors import UsageError

F, layers = paddle.nn.functional, fluid.layers
X = np.arange(1, 13, dtype="float32").reshape(2, 6)
IMAGE = np.arange(1, 17, dtype="float32").reshape(1, 1, 4, 4)
IDS = np.array([[1], [0]])
SIDES = np.array([1, 0, 2, 1], "int32")  # left, right, top, bottom of paddle's pad; top, ... of pad2d

# The layer's call with a variable ``one`` that holds 1, ``two`` that holds 2, and what numpy makes of it.
CALLS = {
    "concat": (lambda v: layers.concat([v.x, v.x], axis=v.one), np.concatenate([X, X], 1)),
    "paddle.concat": (lambda v: paddle.concat([v.x, v.x], axis=v.one), np.concatenate([X, X], 1)),
    "split": (lambda v: layers.split(v.x, 2, dim=v.one)[1], X[:, 3:]),
    "split by sections": (lambda v: layers.split(v.x, [v.one, v.two, -1], 1)[2], X[:, 3:]),
    "paddle.split": (lambda v: paddle.split(v.x, 3, axis=v.one)[0], X[:, :2]),
    "paddle.chunk": (lambda v: paddle.chunk(v.x, 2, axis=v.one)[0], X[:, :3]),
    "unsqueeze": (lambda v: layers.unsqueeze(v.x, v.one), X[:, None]),
    "unsqueeze by a list": (lambda v: layers.unsqueeze(v.x, [0, v.two]), X[None, :, None]),
    "paddle.unsqueeze": (lambda v: paddle.unsqueeze(v.x, axis=v.two), X[..., None]),
    "gather": (lambda v: paddle.gather(v.x, layers.reshape(v.ids, [-1]), axis=v.one), X[:, [1, 0]]),
    "slice": (lambda v: layers.slice(v.x, [1], [v.one], [4]), X[:, 1:4]),
    "slice by whole variables": (lambda v: layers.slice(v.x, [1], v.one, v.two), X[:, 1:2]),
    "strided_slice": (lambda v: layers.strided_slice(v.x, [1], [v.one], [6], [v.two]), X[:, 1:6:2]),
    "index": (lambda v: v.x[:, v.one:], X[:, 1:]),
    "pad2d": (lambda v: layers.pad2d(v.image, v.sides), np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (2, 1)))),
    "F.pad": (lambda v: F.pad(v.image, v.sides, value=3.0),
              np.pad(IMAGE, ((0, 0), (0, 0), (2, 1), (1, 0)), constant_values=3)),
    "F.pad reflected": (lambda v: F.pad(v.image, v.sides, "reflect"),
                        np.pad(IMAGE, ((0, 0), (0, 0), (2, 1), (1, 0)), "reflect")),
    "expand": (lambda v: layers.expand(v.x, [1, v.two]), np.tile(X, (1, 2))),
    "paddle.expand": (lambda v: paddle.expand(layers.unsqueeze(v.x, [0]), [v.two, 2, 6]), np.stack([X, X])),
    "paddle.clip": (lambda v: paddle.clip(v.x, max=layers.cast(v.two, "float32") + 2.5), np.minimum(X, 4.5)),
    "F.one_hot": (lambda v: F.one_hot(layers.reshape(v.ids, [-1]), v.two) * v.x[:, :2], np.eye(2)[[1, 0]] * X[:, :2]),
    "one_hot": (lambda v: layers.one_hot(v.ids, v.two) * v.x[:, :2], np.eye(2)[[1, 0]] * X[:, :2]),
    "fill_constant": (lambda v: v.x * layers.fill_constant([1], "int32", v.two), X * 2),
    "topk": (lambda v: layers.topk(v.x, v.two)[0], X[:, :-3:-1]),
}


class Variables:
    """The variables that calls are made with; the numbers are fed, or constants of the program."""

    def __init__(self, are_fed):
        self.x, self.image = fluid.data("x", [None, 6]), fluid.data("image", [1, 1, 4, 4])
        self.ids = fluid.data("ids", [None, 1], "int64")
        self.x.stop_gradient = self.image.stop_gradient = False
        self.feed = {"x": X, "image": IMAGE, "ids": IDS}
        for name, value in {"one": np.array([1], "int32"), "two": np.array([2], "int32"), "sides": SIDES}.items():
            if are_fed:
                self.feed[name] = value
            setattr(self, name, fluid.data(name, list(value.shape), "int32") if are_fed else layers.assign(value))


@pytest.mark.parametrize("are_fed", [True, False], ids=["fed", "constant"])
@pytest.mark.parametrize("name", CALLS)
def test_a_variable_in_the_place_of_a_number(name, are_fed):
    call, want = CALLS[name]
    variables = Variables(are_fed)
    made = call(variables)
    source = variables.image if name.startswith(("pad2d", "F.pad")) else variables.x
    grad, = fluid.gradients([layers.reduce_sum(made * made)], [source])
    found, slope = fluid.Executor().run(feed=variables.feed, fetch_list=[made, grad])
    assert len(made.shape) == want.ndim and all(a in (-1, b) for a, b in zip(made.shape, want.shape)), made.shape
    np.testing.assert_allclose(found, want, rtol=1e-6)
    assert slope.shape == variables.feed[source.name].shape and slope.any() and (slope >= 0).all()


@pytest.mark.parametrize("call", [
    lambda x, k: layers.reduce_sum(x, dim=k), lambda x, k: layers.reduce_mean(x, dim=[0, k]),
    lambda x, k: paddle.sum(x, axis=k), lambda x, k: paddle.max(x, axis=k), lambda x, k: layers.softmax(x, axis=k),
    lambda x, k: layers.stack([x, x], axis=k), lambda x, k: layers.argmax(x, k), lambda x, k: paddle.cumsum(x, axis=k),
    lambda x, k: layers.transpose(x, [k, 0]), lambda x, k: layers.squeeze(x, [k]), lambda x, k: layers.flatten(x, k),
    lambda x, k: layers.dropout(x, k), lambda x, k: layers.pad(x, [0, 0, k, 0]), lambda x, k: layers.reverse(x, k),
    lambda x, k: layers.matmul(x, x, alpha=k), lambda x, k: layers.eye(k), lambda x, k: layers.unstack(x, k),
    lambda x, k: paddle.roll(x, k, 0), lambda x, k: layers.leaky_relu(x, alpha=k), lambda x, k: range(3)[k]])
def test_a_variable_where_only_a_number_will_do_is_named(call):
    x, k = fluid.data("x", [2, 6]), fluid.data("k", [1], "int32")
    with pytest.raises(UsageError, match="known when the program is built, got the variable 'k', which has"):
        call(x, k)
    with pytest.raises(TypeError):
        call(x, k)


@pytest.mark.parametrize("axis", [None, 0, 1, [0, 1]], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_spread_over_a_batch_of_unknown_size(axis, rows):
    x = fluid.data("x", [None, 4])
    x.stop_gradient = False
    values = np.random.default_rng(0).normal(size=(rows, 4)).astype("float32")
    made = [paddle.var(x, axis), paddle.std(x, axis), paddle.std(x, axis, False), paddle.var(x, axis, True, True)]
    grad, = fluid.gradients([paddle.sum(made[0])], [x])
    found = fluid.Executor().run(feed={"x": values}, fetch_list=[*made, grad])
    along = tuple(axis) if isinstance(axis, list) else axis
    count = values.size // values.mean(along).size
    freedom = 1 if count > 1 else 0
    wanted = [values.var(along, ddof=freedom), values.std(along, ddof=freedom), values.std(along),
              values.var(along, ddof=freedom, keepdims=True),
              2 * (values - values.mean(along, keepdims=True)) / (count - freedom)]
    for got, want in zip(found, wanted):
        np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shifts, axis", [(1, 0), (-2, None), ([1, 3], [0, 1]), (7, -1)])
def test_rolled_over_a_batch_of_unknown_size(shifts, axis):
    x = fluid.data("x", [None, 6])
    x.stop_gradient = False
    made = paddle.roll(x, shifts, axis)
    grad, = fluid.gradients([layers.reduce_sum(made * made)], [x])
    executor = fluid.Executor()
    for values in (X, X[:1], np.concatenate([X, X + 1])):
        found, slope = executor.run(feed={"x": values}, fetch_list=[made, grad])
        np.testing.assert_array_equal(found, np.roll(values, shifts, axis))
        np.testing.assert_array_equal(slope, 2 * values)


def test_a_shape_that_follows_another_is_unknown_where_that_is():
    x, row, k = fluid.data("x", [None, 6]), fluid.data("row", [1, 6]), fluid.data("k", [1], "int32")
    like, wide = paddle.expand_as(row, x), paddle.expand(row, [k, 6])
    dropped = layers.squeeze(layers.slice(x, [0], [0], [k]), [0])
    assert like.shape == wide.shape == (-1, 6) and dropped.shape == (6,)
    found = fluid.Executor().run(feed={"x": X, "row": X[:1], "k": np.array([1], "int32")},
                                 fetch_list=[like, wide, dropped])
    assert [one.shape for one in found] == [(2, 6), (1, 6), (6,)]
