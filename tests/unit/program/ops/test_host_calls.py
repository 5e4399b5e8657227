"""Ops of program/ops/host_calls.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.host_calls import Print, py_func
from fleet_mpi.program.layers.math import scale
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)
CASES = [Case("print", {"In": rng.normal(size=(2, 3))}, {"message": "said"}, lambda i, a: {"Out": i["In"]}, grads="In")]

test_forward, test_gradient, test_device = checks(CASES)


def test_a_variable_is_described_on_stderr_and_never_on_stdout(capfd):
    shown = Print(static_data("x", [-1, 2]), message="look:", summarize=3)
    Executor().run(feed={"x": np.arange(4, dtype="float32").reshape(2, 2)}, fetch_list=[scale(shown, 2.0)])
    out, err = capfd.readouterr()
    assert out == ""
    assert all(word in err for word in ("look:", "variable: x", "[2, 2]", "float32", "[0.0, 1.0, 2.0] ..."))


def test_it_is_described_as_often_as_asked(capfd):
    Print(static_data("x", [1]), first_n=2, message="look:")
    executor = Executor()
    for _ in range(4):
        executor.run(feed={"x": np.zeros(1, "float32")})
    assert capfd.readouterr().err.count("look:") == 2


@pytest.mark.parametrize("phase, count", [("both", 2), ("forward", 1), ("backward", 1)])
def test_the_gradient_is_described_too(capfd, phase, count):
    x = static_data("x", [1])
    x.stop_gradient = False
    grad, = gradients([scale(Print(x, message="look:", print_phase=phase), 3.0)], [x])
    found, = Executor().run(feed={"x": np.zeros(1, "float32")}, fetch_list=[grad])
    assert float(found) == 3.0 and capfd.readouterr().err.count("look:") == count


def output(name, shape=(-1, 2), dtype="float32"):
    return default_main_program().global_block().create_var(name=name, shape=shape, dtype=dtype)


def test_a_python_function_gets_tensors_and_gives_arrays():
    x, out = data("x", [2]), output("out")
    py_func(lambda tensor: np.array(tensor).cumsum(axis=0), x, out)
    given = rng.normal(size=(3, 2)).astype("float32")
    found, = Executor().run(feed={"x": given}, fetch_list=[scale(out, 2.0)])
    np.testing.assert_allclose(found, 2 * given.cumsum(axis=0), rtol=1e-6)


def test_its_gradient_comes_from_the_backward_function():
    x, out = data("x", [2], stop_gradient=False), output("out")
    py_func(np.tanh, x, out, backward_func=lambda y, dy: np.array(dy) * (1 - np.square(y)),
            skip_vars_in_backward_input=x)
    grad, = gradients([scale(out, 3.0)], [x])
    given = rng.normal(size=(3, 2)).astype("float32")
    found, = Executor().run(feed={"x": given}, fetch_list=[grad])
    np.testing.assert_allclose(found, 3 * (1 - np.tanh(given) ** 2), rtol=1e-5)


def test_a_function_for_its_effect_alone_runs_at_every_step():
    seen = []
    py_func(lambda tensor: seen.append(float(tensor)), static_data("x", [1]), None)
    executor = Executor()
    for value in (1.0, 2.0):
        executor.run(feed={"x": np.array([value], "float32")})
    assert seen == [1.0, 2.0]


def test_too_few_results_are_an_error():
    py_func(lambda tensor: None, data("x", [2]), output("out"))
    with pytest.raises(ProgramError, match="returned 0 value"):
        Executor().run(feed={"x": np.zeros((1, 2), "float32")}, fetch_list=["out"])
