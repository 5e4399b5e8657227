"""fleet_mpi/program/build/backward.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.backward import append_backward, gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program
from tests.unit.program.building import add, apply, data, mean, mul, parameter

X = np.arange(1, 7, dtype="float32").reshape(3, 2)


def run(fetches):
    return Executor().run(feed={"x": X}, fetch_list=fetches)


def test_pairs_are_parameters_with_their_gradients():
    x, w, b = data("x", [-1, 2]), parameter("w", [1, 2]), parameter("b", [0, 0])
    pairs = append_backward(mean(add(mul(x, w), b)))
    assert [(param.name, grad.name) for param, grad in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]
    dw, db = run([grad for _, grad in pairs])
    np.testing.assert_allclose(dw, X.sum(0) / 6, rtol=1e-6)
    np.testing.assert_allclose(db, [0.5, 0.5], rtol=1e-6)


def test_a_variable_used_several_times_gets_the_sum():
    x, w = data("x", [-1, 2]), parameter("w", [3, 4])
    product = mul(w, w)
    loss = mean(mul(add(mul(x, product), w), w))
    (_, grad), = append_backward(loss)
    w_value = np.array([3.0, 4.0])
    want = ((3 * X * w_value**2 + 2 * w_value) / 6).sum(0)
    np.testing.assert_allclose(run([grad])[0], want, rtol=1e-5)


def test_nothing_flows_through_stop_gradient_or_the_no_grad_set():
    x, w, v = data("x", [-1, 2]), parameter("w", [1, 2]), parameter("v", [1, 2])
    inner = mul(x, w)
    inner.stop_gradient = True
    pairs = append_backward(mean(add(inner, v)))
    assert [param.name for param, _ in pairs] == ["v"]
    other = mean(add(mul(x, w), v))
    assert [param.name for param, _ in append_backward(other, no_grad_set={"v"})] == ["w"]


def test_only_the_parameters_asked_for():
    x, w, v = data("x", [-1, 2]), parameter("w", [1, 2]), parameter("v", [1, 2])
    pairs = append_backward(mean(add(mul(x, w), v)), parameter_list=["v"])
    assert [param.name for param, _ in pairs] == ["v"]
    assert "elementwise_mul_grad" not in [op.type for op in default_main_program().global_block().ops]


def test_frozen_parameters_get_no_gradient():
    x, w = data("x", [-1, 2]), parameter("w", [1, 2])
    w.trainable, w.stop_gradient = False, True
    assert append_backward(mean(add(mul(x, w), parameter("b", [0, 0]))))[0][0].name == "b"


def test_gradients_of_an_input_with_given_weights():
    x = data("x", [-1, 2], stop_gradient=False)
    weights = data("weights", [-1, 2])
    found, = gradients([mul(x, x)], [x], [weights])
    got, = Executor().run(feed={"x": X, "weights": 2 * X}, fetch_list=[found])
    np.testing.assert_allclose(got, 4 * X * X, rtol=1e-6)


def test_gradients_with_respect_to_what_does_not_matter_are_none():
    x = data("x", [-1, 2], stop_gradient=False)
    other = data("other", [-1, 2], stop_gradient=False)
    assert gradients([mul(x, x)], [other]) == [None]


def test_the_loss_must_be_one_number():
    x = data("x", [-1, 2])
    with pytest.raises(ProgramError, match="mean or sum"):
        append_backward(mul(x, parameter("w", [1, 2])))
    with pytest.raises(ProgramError, match="str"):
        append_backward("loss")


def test_recomputing_gives_the_same_bits():
    def build(checkpointed):
        x, w = data("x", [-1, 2]), parameter("w", [0.3, 0.7])
        h1 = mul(x, w, out="h1")
        h2 = mul(add(h1, h1), w, out="h2")
        h3 = mul(add(h2, h1), h2, out="h3")
        return append_backward(mean(h3), checkpoints=[h2] if checkpointed else None)[0][1]
    plain = run([build(False)])[0]
    default_main_program().global_block().ops.clear()
    default_main_program().global_block().vars.clear()
    default_main_program().touch()
    again = run([build(True)])[0]
    assert any("@RECOMPUTED" in name for op in default_main_program().global_block().ops
               for name in op.output_arg_names)
    assert (plain == again).all()


def test_an_op_keeps_the_line_of_the_script_in_its_gradient():
    loss = mean(mul(data("x", [-1, 2]), parameter("w", [1, 2])))
    append_backward(loss)
    ops = {op.type: op for op in default_main_program().global_block().ops}
    assert ops["elementwise_mul_grad"].where() == ops["elementwise_mul"].where()
    assert apply  # the line above is in this file, not in the package


def test_a_gradient_passes_through_an_op_that_overwrites_its_input():
    x, w = data("x", [-1, 2]), parameter("w", [1, -2])
    hidden = mul(x, w)
    default_main_program().global_block().append_op("relu", {"X": hidden}, {"Out": hidden})
    (_, grad), = append_backward(mean(hidden))
    np.testing.assert_allclose(run([grad])[0], [X[:, 0].sum() / 6, 0], rtol=1e-6)


def test_a_variable_that_is_given_another_value_gets_a_gradient_for_each():
    x, w, v = data("x", [-1, 2]), parameter("w", [1, 2]), parameter("v", [3, 4])
    held = apply("assign", {"X": w})
    product = mul(x, held)
    default_main_program().global_block().append_op("assign", {"X": v}, {"Out": held})
    pairs = append_backward(mean(add(product, held)))
    dw, dv = run([grad for _, grad in pairs])
    np.testing.assert_allclose(dw, X.sum(0) / 6, rtol=1e-6)
    np.testing.assert_allclose(dv, [0.5, 0.5], rtol=1e-6)


def test_a_second_walk_leaves_the_gradients_of_the_first_alone():
    x, w = data("x", [-1, 2]), parameter("w", [1, 2])
    hidden = mul(x, w)
    first, = gradients([hidden], [w])
    second, = gradients([hidden, mul(hidden, hidden)], [w])
    assert first.name == second.name == "w@GRAD"
    np.testing.assert_allclose(run([first])[0], (2 * X * X * [1, 2] + X).sum(0), rtol=1e-6)


@pytest.mark.parametrize("type, is_said", [("square", True), ("tanh", False), ("scale", False)])
def test_a_value_that_is_gone_when_its_gradient_is_due_is_said(type, is_said, capsys):
    """The gradient of square reads its input, that of tanh its output, that of scale nothing."""
    hidden = mul(data("x", [-1, 2]), parameter("w", [1, 2]))
    default_main_program().global_block().append_op(type, {"X": hidden}, {"Out": hidden})
    append_backward(mean(hidden))
    assert (f"op '{type}'" in capsys.readouterr().err) is is_said


def test_a_factor_that_is_counted_up_behind_its_use_is_said(capsys):
    counter = default_main_program().global_block().create_var(name="counter", shape=[1], persistable=True)
    hidden = mul(mul(data("x", [-1, 2]), parameter("w", [1, 2])), counter)
    default_main_program().global_block().append_op("increment", {"X": counter}, {"Out": counter})
    append_backward(mean(hidden))
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "reads 'counter' after op 'increment'" in said
