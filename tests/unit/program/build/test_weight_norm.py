"""A weight as a length times a direction: both parameters learn, and the weight is what they make."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.weight_norm import WeightNormParamAttr


def built(dim):
    x = fluid.data("x", [None, 3])
    out = fluid.layers.fc(x, 4, param_attr=fluid.WeightNormParamAttr(dim=dim, name="w"), bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.square(out))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe, test, out, loss


def value(name):
    return fluid.global_scope().find_var(name).get_tensor().numpy().copy()


def weight_of(v, g, dim):
    axes = tuple(number for number in range(2) if number != dim)
    return g * v / np.sqrt((v ** 2).sum(axes, keepdims=True))


@pytest.mark.parametrize("dim, lengths", ((None, (1, 1)), (0, (3, 1)), (1, (1, 4)), (-1, (1, 4))))
def test_the_weight_starts_as_drawn_and_is_made_of_both(dim, lengths):
    exe, test, out, loss = built(dim)
    v, g = value("w_v"), value("w_g")
    kept = None if dim is None else dim % 2
    assert g.shape == lengths and np.allclose(weight_of(v, g, kept), v, atol=1e-6)
    rows = np.eye(3, dtype="float32")
    exe.run(feed={"x": rows}, fetch_list=[loss])
    after_v, after_g = value("w_v"), value("w_g")
    assert (after_g != g).all()
    found, = exe.run(test, feed={"x": rows}, fetch_list=[out])
    assert np.allclose(found, weight_of(after_v, after_g, kept), atol=1e-6)


def test_the_length_learns_along_the_direction():
    exe, test, out, loss = built(1)
    v, g, rows = value("w_v"), value("w_g"), np.eye(3, dtype="float32")
    exe.run(feed={"x": rows}, fetch_list=[loss])
    weight = weight_of(v, g, 1)
    direction = weight / g
    expected = g - 0.1 * (2 * weight / weight.size * direction).sum(0, keepdims=True)
    assert np.allclose(value("w_g"), expected, atol=1e-6)


def test_the_weight_is_noted_and_a_dimension_must_exist():
    built(0)
    assert WeightNormParamAttr.params_with_weight_norm[-1].shape == (3, 4)
    with pytest.raises(UsageError, match="dim 2 is none of the 2 dimensions"):
        fluid.layers.fc(fluid.data("y", [None, 3]), 4, param_attr=WeightNormParamAttr(dim=2))
