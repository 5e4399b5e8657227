"""fleet_mpi/program/engine/plan.py: what a plan does with unusual feeds, fetches and scopes."""

import numpy as np
import pytest

from fleet_mpi.errors import MissingFeed
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine import memory
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import add, apply, data, mean, mul, parameter

X = np.arange(12, dtype="float32").reshape(4, 3)


def held(name):
    return np.array(global_scope().find_var(name).get_tensor())


@pytest.fixture(params=[0, 1 << 30], ids=["shared", "apart"], autouse=True)
def sharing(request, monkeypatch):
    """Everything here holds whether or not temporaries share memory."""
    monkeypatch.setattr(memory, "SHARE_FROM_BYTES", request.param)


def test_a_fed_variable_that_an_op_overwrites_has_each_value_in_its_turn():
    x, fed = data("x", [-1, 3]), data("fed", [-1, 3])
    early = apply("reduce_sum", {"X": fed}, dim=[0], keep_dim=True)
    default_main_program().global_block().append_op("scale", {"X": x}, {"Out": fed}, {"scale": 3.0})
    late = add(fed, x)
    exe = Executor()
    for rows in (2, 4, 2):
        got = exe.run(feed={"x": X, "fed": X[:rows]}, fetch_list=[early, late, fed])
        assert (got[0] == X[:rows].sum(0)).all() and (got[1] == 4 * X).all() and (got[2] == 3 * X).all()


def test_a_fed_parameter_is_used_updated_and_kept():
    x, w = data("x", [-1, 3]), parameter("w", [1, 2, 3])
    loss = mean(mul(x, w))
    SGD(0.5).minimize(loss)
    exe = Executor()
    exe.run(default_startup_program())
    given = np.array([7, 8, 9], "float32")
    value, grad, new = exe.run(feed={"x": X, "w": given}, fetch_list=[loss, "w@GRAD", "w"])
    np.testing.assert_allclose(value, [(X * given).mean()], rtol=1e-6)
    assert (new == given - np.float32(0.5) * grad).all() and (held("w") == new).all()
    assert (exe.run(feed={"x": X}, fetch_list=["w"])[0] == new - np.float32(0.5) * grad).all()


def test_a_kept_variable_is_as_long_as_the_latest_batch():
    y = add(data("x", [-1, 3]), parameter("w", [1, 2, 3]))
    y.persistable = True
    exe = Executor()
    for rows in (4, 2, 4, 4, 2):
        exe.run(feed={"x": X[:rows]})
        assert np.array_equal(held(y.name), X[:rows] + [1, 2, 3])


def test_shapes_along_a_chain_of_a_thousand_ops_that_do_not_run_are_found():
    """The gradient of a sum needs the shapes of its operands only, so nothing of the forward pass runs."""
    w, h = parameter("w", [1, 2, 3]), data("x", [-1, 3])
    for _ in range(1000):
        h = add(h, w)
    (_, grad), = append_backward(mean(h))
    np.testing.assert_allclose(Executor().run(feed={"x": X}, fetch_list=[grad])[0], [1000 / 3] * 3, rtol=1e-5)


def test_an_op_that_reads_a_value_twice_does_not_write_over_it():
    x = apply("scale", {"X": data("x", [1])}, scale=1.0)
    out = apply("scale", {"X": x, "ScaleTensor": x}, bias=1.0, bias_after_scale=False)
    assert float(Executor().run(feed={"x": [3.0]}, fetch_list=[out])[0]) == 12.0


def test_a_training_step_without_its_feed_asks_for_it():
    """What asks first is a gradient, for the shape of what would have been computed from the feed."""
    SGD(0.5).minimize(mean(mul(data("x", [-1, 3]), parameter("w", [1, 2, 3]))))
    exe = Executor()
    exe.run(default_startup_program())
    with pytest.raises(MissingFeed, match="'x'.*feed it"):
        exe.run()
