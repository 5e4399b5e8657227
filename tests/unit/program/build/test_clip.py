"""fleet_mpi/program/build/clip.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import UsageError
from fleet_mpi.program.build import clip as clips
from fleet_mpi.program.build.clip import (
    ClipByGlobalNorm,
    ClipByNorm,
    ClipByValue,
    ErrorClipByValue,
    append_gradient_clip_ops,
    set_gradient_clip,
)
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import Role, VarType
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import data, mean, mul, parameter

A = np.array([[3.0, -4.0], [0.0, 12.0]], "float32")  # norm 13
B = np.array([0.0, 84.0], "float32")                 # norm 84; of both together 85


def pairs():
    return [(parameter("b", B), data("b@GRAD", [2])), (parameter("a", A), data("a@GRAD", [2, 2]))]


def run(clipped):
    found = Executor().run(feed={"a@GRAD": A, "b@GRAD": B}, fetch_list=[grad for _, grad in clipped])
    return dict(zip([param.name for param, _ in clipped], found))


@pytest.mark.parametrize("clip, a, b", [
    (ClipByValue(5.0), np.clip(A, -5, 5), np.clip(B, -5, 5)),
    (ClipByValue(max=5.0, min=-1.0), np.clip(A, -1, 5), np.clip(B, -1, 5)),
    (ClipByNorm(26.0), A, B * 26 / 84),
    (ClipByGlobalNorm(17.0), A / 5, B / 5),
    (ClipByGlobalNorm(85.5), A, B),
])
def test_gradients_are_clipped(clip, a, b):
    clipped = clip(pairs())
    assert [param.name for param, _ in clipped] == ["b", "a"], "the order of the pairs stays"
    found = run(clipped)
    np.testing.assert_allclose(found["a"], a, rtol=1e-6)
    np.testing.assert_allclose(found["b"], b, rtol=1e-6)


def test_gradients_below_the_global_norm_keep_their_bits():
    found = run(ClipByGlobalNorm(1000.0)(pairs()))
    np.testing.assert_array_equal(found["a"], A)


def test_squares_are_summed_in_the_order_of_names_whatever_the_order_of_pairs():
    given = pairs()
    ClipByGlobalNorm(1.0)(given)
    total = next(op for op in default_main_program().global_block().ops if op.type == "sum")
    assert total.input("X") == ["a@GRAD@SQUARES", "b@GRAD@SQUARES"]


def test_ops_are_the_optimizers_name_the_pair_and_carry_a_scope():
    ClipByGlobalNorm(1.0)(pairs())
    for op in default_main_program().global_block().ops:
        assert op.attrs["op_role"] == int(Role.Optimize)
        assert op.attrs["op_namescope"] == "/gradient_clip/"
    assert default_main_program().global_block().ops[-1].attrs["op_role_var"] == ["b", "b@GRAD"]


def test_only_what_needs_it_is_clipped():
    given = pairs()
    given[0][0].need_clip = False
    found = run(ClipByGlobalNorm(6.5)(given))
    np.testing.assert_allclose(found["a"], A / 2)
    np.testing.assert_array_equal(found["b"], B)
    by_function = ClipByValue(1.0, need_clip=lambda param: param.name == "b")(pairs())
    assert [grad.name for _, grad in by_function] == ["b@GRAD@CLIP", "a@GRAD"]


# Row 1 twice: merged [[3, 4]] of norm 5, apart they would have another.
ROWS = Rows(np.array([1, 1, 0]), np.array([[1.0, 4.0], [2.0, 0.0], [0.0, 12.0]], "float32"), 3)


@pytest.mark.parametrize("clip, want", [
    (ClipByValue(3.5), [[0, 3.5], [3, 3.5], [0, 0]]),
    (ClipByNorm(6.5), [[0, 6], [1.5, 2], [0, 0]]),
    (ClipByGlobalNorm(1.3), [[0, 1.2], [0.3, 0.4], [0, 0]]),
])
def test_rows_are_merged_and_clipped(clip, want):
    param = parameter("table", np.zeros((3, 2)))
    grad = default_main_program().global_block().create_var(name="g", shape=[3, 2], type=VarType.SELECTED_ROWS)
    global_scope().var("g").value = ROWS
    SGD(1.0, grad_clip=clip).apply_gradients([(param, grad)])
    parameter("learning_rate_0", [1.0])
    executor = Executor()
    for times in (1, 2):  # the second run must not see what the first left behind
        executor.run()
        np.testing.assert_allclose(global_scope().array("table"), -times * np.array(want), rtol=1e-6)


def test_set_gradient_clip_is_for_the_parameters_that_exist_by_then():
    given = pairs()
    set_gradient_clip(ClipByValue(1.0), param_list=["a"])
    clipped = append_gradient_clip_ops(given)
    assert [grad.name for _, grad in clipped] == ["b@GRAD", "a@GRAD@CLIP"]


def test_parameters_of_one_group_are_clipped_together():
    given = pairs()
    set_gradient_clip(ClipByGlobalNorm(17.0))
    found = run(append_gradient_clip_ops(given))
    np.testing.assert_allclose(found["b"], B / 5, rtol=1e-6)


def test_one_group_has_one_norm():
    given = pairs()
    given[0][0].gradient_clip_attr = ClipByGlobalNorm(1.0)
    given[1][0].gradient_clip_attr = ClipByGlobalNorm(2.0)
    with pytest.raises(UsageError, match="'default_group' ask for different norms"):
        append_gradient_clip_ops(given)


def test_a_clip_after_minimize_is_warned_of(monkeypatch):
    said = []
    monkeypatch.setattr(clips.notices.log(), "warning", said.append)
    SGD(0.1).apply_gradients(pairs())
    set_gradient_clip(ClipByValue(1.0))
    assert "minimize was called before" in said[0]


def test_the_error_on_the_way_back_is_clipped():
    x, w, v = data("x", [2]), parameter("w", [1, 2]), parameter("v", [2, 40])
    inner = mul(x, w)
    inner.set_error_clip(ErrorClipByValue(2.0))
    optimizer = SGD(0.1)
    pair = dict((param.name, grad) for param, grad in optimizer.backward(mean(mul(inner, v))))
    dw, dv = Executor().run(feed={"x": np.array([3, 5], "float32")}, fetch_list=[pair["w"], pair["v"]])
    np.testing.assert_allclose(dw, [3 * 1, 5 * 2], err_msg="v / 2 = [1, 20] clipped to [1, 2]")
    np.testing.assert_allclose(dv, [1.5, 5.0])


@pytest.mark.parametrize("make, text", [
    (lambda: ClipByValue(-1.0), "above 0"), (lambda: ClipByValue(1.0, min=2.0), "min 2.0 is above max 1.0"),
    (lambda: ClipByNorm(0), "above 0"), (lambda: ClipByNorm(1.0, need_clip=["a"]), "need_clip must be a function"),
    (lambda: set_gradient_clip(1.0), "expected a GradientClip"),
])
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(UsageError, match=text):
        make()


def test_1x_and_2x_names_are_the_same_classes():
    for kind in ("Value", "Norm", "GlobalNorm"):
        assert getattr(clips, "GradientClipBy" + kind) is getattr(clips, "ClipGradBy" + kind)
