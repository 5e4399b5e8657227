"""Layers that rearrange variables."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers import manipulation as layers
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.tensor import fill_constant, shape

X = np.arange(24, dtype="float32").reshape(2, 3, 4)


def run(*fetches, **feed):
    return Executor().run(feed=feed, fetch_list=list(fetches))


def x_fed():
    return data("x", [3, 4], stop_gradient=False)


def test_shapes_known_while_building_and_values_when_run():
    x = x_fed()
    cases = {
        layers.reshape(x, [0, -1]): ((-1, 12), X.reshape(2, 12)),
        layers.reshape(x, [-1, 4]): ((-1, 4), X.reshape(6, 4)),
        layers.transpose(x, [0, 2, 1]): ((-1, 4, 3), X.swapaxes(1, 2)),
        layers.unsqueeze(x, [1]): ((-1, 1, 3, 4), X[:, None]),
        layers.squeeze(layers.unsqueeze(x, 1), [1]): ((-1, 3, 4), X),
        layers.flatten(x): ((-1, 12), X.reshape(2, 12)),
        layers.flatten_contiguous_range(x, 1, 2): ((-1, 12), X.reshape(2, 12)),
        layers.slice(x, [1, 2], [0, -2], [2, 100]): ((-1, 2, 2), X[:, :2, -2:]),
        layers.strided_slice(x, [2], [3], [0], [-2]): ((-1, 3, 2), X[:, :, [3, 1]]),
        layers.expand(x, [1, 2, 1]): ((-1, 6, 4), np.tile(X, (1, 2, 1))),
        layers.tile(x, [2]): ((-1, 3, 8), np.tile(X, 2)),
        layers.concat([x, x], axis=1): ((-1, 6, 4), np.concatenate([X, X], 1)),
        layers.concat(x): ((-1, 3, 4), X),
        layers.stack([x, x], axis=1): ((-1, 2, 3, 4), np.stack([X, X], 1)),
        layers.pad(x, [0, 0, 1, 0, 0, 2]): ((-1, 4, 6), np.pad(X, ((0, 0), (1, 0), (0, 2)))),
        layers.reverse(x, 1): ((-1, 3, 4), X[:, ::-1]),
        layers.flip(x, [1, 2]): ((-1, 3, 4), X[:, ::-1, ::-1]),
        layers.argmax(x, 2): ((-1, 3), X.argmax(2)),
        layers.argmin(x, -1): ((-1, 3), X.argmin(-1)),
    }
    for (var, (built, want)), got in zip(cases.items(), run(*cases, x=X)):
        assert var.shape == built, var.name
        np.testing.assert_array_equal(got, want, err_msg=var.name)


def test_pieces():
    x = x_fed()
    halves, parts = layers.split(x, 2, dim=2), layers.split(x, [1, -1], dim=1)
    rows = layers.unstack(x, axis=1)
    assert [var.shape for var in halves + parts] == [(-1, 3, 2)] * 2 + [(-1, 1, 4), (-1, 2, 4)] and len(rows) == 3
    found = run(*halves, *parts, *rows, x=X)
    for got, want in zip(found, [X[:, :, :2], X[:, :, 2:], X[:, :1], X[:, 1:], *X.swapaxes(0, 1)]):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(UsageError, match="give num"):
        layers.unstack(x, axis=0)


def test_rows_and_elements_by_position():
    x, index = static_data("x", [4, 2]), static_data("index", [-1], "int64")
    values, new = np.arange(8, dtype="float32").reshape(4, 2), np.array([[9, 9], [8, 8]], "float32")
    found = run(layers.gather(x, index), layers.gather_axis(x, index, axis=0),
                layers.gather_nd(x, layers.unsqueeze(index, [1])),
                layers.scatter(x, index, static_data("new", [2, 2])),
                layers.scatter(x, index, static_data("new", [2, 2]), overwrite=False),
                x=values, index=np.array([3, 0]), new=new)
    overwritten = np.array([[8, 8], [2, 3], [4, 5], [9, 9]])
    for got, want in zip(found, [values[[3, 0]]] * 3 + [overwritten] * 2):
        np.testing.assert_array_equal(got, want)


def test_ones_at_ids():
    one = layers.one_hot(static_data("a", [2, 1], "int64"), 3)
    two = layers.one_hot_v2(static_data("b", [2], "int64"), 3)
    assert one.shape == two.shape == (2, 3) and one.stop_gradient
    for got in run(one, two, a=np.array([[2], [0]]), b=np.array([2, 0])):
        np.testing.assert_array_equal(got, [[0, 0, 1], [1, 0, 0]])


def test_sorting_gives_elements_and_where_they_were():
    x = static_data("x", [-1, 3])
    values = np.array([[3, 1, 2], [5, 9, 7]], "float32")
    pairs = [layers.topk(x, 2), layers.topk(x, fill_constant([1], "int32", 2)),
             layers.topk_along(x, 1, axis=0, largest=False), layers.argsort(x), layers.argsort(x, descending=True)]
    found = run(*[one for pair in pairs for one in pair], x=values)
    wanted = [[[3, 2], [9, 7]], [[0, 2], [1, 2]]] * 2 + [[[3, 1, 2]], [[0, 0, 0]]] + [
        [[1, 2, 3], [5, 7, 9]], [[1, 2, 0], [0, 2, 1]], [[3, 2, 1], [9, 7, 5]], [[0, 2, 1], [1, 2, 0]]]
    for got, want in zip(found, wanted):
        np.testing.assert_array_equal(got, want)


def test_choosing_by_a_condition():
    flags, x, y = static_data("flags", [3], "bool"), static_data("x", [3]), static_data("y", [3])
    places, chosen = layers.where(flags), layers.where(flags, x, y)
    values, which = layers.unique(static_data("ids", [-1], "int64"))
    found = run(places, chosen, values, which, flags=np.array([True, False, True]), x=np.zeros(3, "float32"),
                y=np.ones(3, "float32"), ids=np.array([4, 2, 4]))
    assert [one.tolist() for one in found] == [[[0], [2]], [0, 1, 0], [4, 2], [0, 1, 0]]


def test_a_shape_may_hold_variables_or_be_one():
    x = x_fed()
    rows = layers.slice(shape(x), [0], [0], [1])
    mixed = layers.reshape(x, [rows, 12])
    whole = layers.reshape(mixed, shape(x))
    actual = layers.reshape(x, [0, 12], actual_shape=shape(mixed))
    stretched = layers.expand_to(layers.reshape(x, [-1, 1, 12]), [rows, fill_constant([1], "int32", 2), 12])
    found = run(mixed, whole, actual, stretched, x=X)
    assert [one.shape for one in found] == [(2, 12), (2, 3, 4), (2, 12), (2, 2, 12)]
    assert mixed.shape == (-1, 12)


def test_gradients_flow_through_reshapes_by_variables():
    x = x_fed()
    out = layers.reshape(x, [layers.slice(shape(x), [0], [0], [1]), 12])
    grad, = gradients([out], [x])
    assert (run(grad, x=X)[0] == 1).all()


def test_an_activation_follows_a_reshape():
    out = layers.reshape(x_fed(), [-1, 4], act="relu")
    np.testing.assert_array_equal(run(out, x=X - 5)[0], np.maximum(X - 5, 0).reshape(6, 4))


def test_what_is_no_variable_is_refused_by_name():
    with pytest.raises((UsageError, ProgramError), match="concat.*variable"):
        layers.concat([np.zeros(3)])
