"""Operators of variables give what numpy gives for their values."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi import notices
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.build import variable_math  # noqa: F401
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.graph.program import Program, program_guard
from tests.unit.program.arithmetic_program import A, Arithmetic, B, N

M = np.array([[2, 3, 4], [-2, 5, 3]])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]


@pytest.mark.parametrize("use", ARITHMETIC, ids=lambda use: use.__name__)
@pytest.mark.parametrize("kind", ["float", "int"])
def test_two_variables(use, kind):
    a, b = (A, B) if kind == "float" else (N, M)
    found = Arithmetic(a=a, b=b).run(lambda a, b: use(a, b))
    want = np.trunc(a / b) if kind == "int" and use is operator.truediv else use(a, b)
    assert found.dtype == a.dtype
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("expression, want", [
    (lambda n, a: n * a, N * A.astype(int)), (lambda n, a: n - a, N - A.astype(int)),
    (lambda n, a: a * n, A * N.astype("float32")), (lambda n, a: n > a, N > A.astype(int)),
    (lambda n, a: a > n, A > N), (lambda n, a: n == a, N == A.astype(int)),
    (lambda n, a: n.astype("int32") + n, (N + N).astype("int32")), (lambda n, a: (n > 2) * a, (N > 2) * A)])
def test_the_right_variable_is_cast_to_the_type_of_the_left_one(expression, want):
    found = Arithmetic(n=N, a=A).run(expression)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("use", ARITHMETIC + [operator.pow], ids=lambda use: use.__name__)
@pytest.mark.parametrize("number", [2, 0.5, -3, np.float32(1.5), np.int64(4), True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_variable_and_a_number(use, number, side):
    a = np.array([[2, 3, 4], [1, 5, 2]], np.float32)
    one = (lambda a: use(number, a)) if side == "left" else (lambda a: use(a, number))
    want = one(a.astype(np.float64))
    made = Arithmetic(a=a)
    found = made.run(one)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=2e-5)


def test_numbers_become_attributes_where_that_serves():
    made = Arithmetic(a=A)
    made.run(lambda a: (2 * a + 1 - a / 4) ** 2 - (3 - a))
    assert made.types == ["scale", "scale", "scale", "elementwise_sub", "pow", "scale", "elementwise_sub"]
    made = Arithmetic(a=A)
    made.run(lambda a: 1 / a)
    assert made.types == ["fill_constant", "elementwise_div"]


@pytest.mark.parametrize("expression, want", [
    (lambda n: n + 2, N + 2), (lambda n: 5 - n, 5 - N), (lambda n: n * 3, N * 3), (lambda n: n // 2, N // 2),
    (lambda n: n ** 2, N ** 2), (lambda n: -n, -N), (lambda n: n + 2 ** 60, N + 2 ** 60)])
def test_integers_stay_integers_beside_whole_numbers(expression, want):
    found = Arithmetic(n=N).run(expression)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("expression, want", [
    (lambda n, a: n + 0.5, N + 0.5), (lambda n, a: n / 2, N / 2), (lambda n, a: 1 / (n * n + 1), 1 / (N * N + 1)),
    (lambda n, a: n * 3.0, N * 3), (lambda n, a: n // 2.0, N // 2), (lambda n, a: (n > 2) * 1.5, (N > 2) * 1.5),
    (lambda n, a: (n > 2) + 0.0, N > 2), (lambda n, a: n + np.inf, N + np.inf)])
def test_integers_beside_floats_become_floats(expression, want):
    found = Arithmetic(n=N, a=A).run(expression)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=1e-6)


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("use", COMPARISONS, ids=lambda use: use.__name__)
def test_comparisons_give_bool(use):
    for found, want in [(Arithmetic(a=N, b=M).run(lambda a, b: use(a, b)), use(N, M)),
                        (Arithmetic(a=N).run(lambda a: use(a, 3)), use(N, 3)),
                        (Arithmetic(a=N).run(lambda a: use(2.5, a)), use(2.5, N)),
                        (Arithmetic(a=A).run(lambda a: use(a, 0.5)), use(A, 0.5))]:
        assert found.dtype == bool
        np.testing.assert_array_equal(found, want)


def test_logic_of_bool_variables():
    found = Arithmetic(a=A, b=B).run(lambda a, b: ~((a > 0) & (b > 0)) ^ ((a > 1) | (b > 1)))
    np.testing.assert_array_equal(found, ~((A > 0) & (B > 0)) ^ ((A > 1) | (B > 1)))


def test_unary_and_matrix_operators():
    made = Arithmetic(a=A, b=B)
    np.testing.assert_allclose(made.run(lambda a, b: abs(-a) @ b.T), abs(A) @ B.T, rtol=1e-6)


def test_a_result_per_row_lies_along_the_rows():
    found = Arithmetic(batch=True, a=A, rows=np.array([2.0, 4.0], np.float32)).run(lambda a, rows: a / rows)
    np.testing.assert_allclose(found, A / [[2], [4]], rtol=1e-6)


def test_gradients_flow_through_operators():
    made = Arithmetic(a=A, b=B)
    with program_guard(made.program, Program()):
        a, b = made.vars["a"], made.vars["b"]
        grad, = gradients([(2 * a - a / b) ** 2], [a])
    np.testing.assert_allclose(made.fetch(grad), 2 * (2 * A - A / B) * (2 - 1 / B), rtol=1e-5)


def test_variables_are_hashed_and_found_by_identity():
    made = Arithmetic(a=A, b=B, c=A[:1, :2], n=N)
    a, b, c, n = made.vars.values()
    assert {a: 1}[a] == 1 and b not in {a: 1}
    assert a in [c, b, a] and b not in [a, c, n] and [c, b, a].index(a) == 2
    assert (a != b) and not (a == b)
    assert a is not None and a != None and not a == None  # noqa: E711
    assert (a == "a") is False


def test_a_variable_is_true_and_that_a_comparison_is_so_is_said_once(capsys, monkeypatch):
    monkeypatch.setattr(notices, "_said", set())
    a = Arithmetic(a=A).vars["a"]
    assert a and bool(a + 1) and not capsys.readouterr().err
    assert bool(a == 1.0) and bool(a > a)
    said = capsys.readouterr().err
    assert said.count("no value while the program is built") == 1 and "layers.cond" in said


def test_what_cannot_be_combined_is_a_type_error():
    a = Arithmetic(a=A).vars["a"]
    for use in (operator.add, operator.lt, operator.matmul):
        with pytest.raises(TypeError):
            use(a, "1")


def test_astype():
    found = Arithmetic(a=A).run(lambda a: a.astype("int64"))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, A.astype(np.int64))


X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("key", [
    0, -1, (1, 2), (0, -1, -1), slice(1, 3), slice(None), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis), Ellipsis,
    (slice(None), slice(None, None, -1)), (slice(None, None, 2), 1, slice(3, 0, -2)), (slice(-1, None), slice(0, -1)),
    None, (0, None), (Ellipsis, None), (None, 1, slice(None), None, 2), (np.int64(1), slice(None, None, -1)),
    (slice(None), slice(-1, -10, -1), slice(1, 100))], ids=str)
@pytest.mark.parametrize("batch", [False, True])
def test_an_index_picks_what_numpy_picks(key, batch):
    found = Arithmetic(batch=batch, x=X).run(lambda x: x[key])
    want = X[key]
    np.testing.assert_array_equal(found, want.reshape(want.shape or (1,)))


parts = st.one_of(st.integers(-3, 2), st.none(), st.slices(3))


@settings(max_examples=80, deadline=None)
@given(st.lists(parts, max_size=3), st.integers(0, 3))
def test_any_index_picks_what_numpy_picks(keys, dots_at):
    x = np.arange(27.0).reshape(3, 3, 3)
    key = tuple(keys[:dots_at] + [Ellipsis] + keys[dots_at:])
    want = x[key]
    if want.size == 0:
        return  # an empty part is no variable of a training program
    made = Arithmetic(x=x)
    var = made.build(lambda x: x[key])
    dropped_all = want.ndim - keys.count(None) == 0
    shape = want.shape if not dropped_all else (1,) * max(keys.count(None), 1)
    assert var.shape == shape
    np.testing.assert_array_equal(made.fetch(var), want.reshape(shape))


def test_a_variable_of_positions_picks_rows():
    picked = np.array([2, 0, 2])
    found = Arithmetic(x=X.reshape(6, 4), at=picked).run(lambda x, at: x[at])
    np.testing.assert_array_equal(found, X.reshape(6, 4)[picked])
    one = np.array([1])
    np.testing.assert_array_equal(Arithmetic(x=X, at=one).run(lambda x, at: x[at]), X[1])
    np.testing.assert_array_equal(Arithmetic(x=X, at=one).run(lambda x, at: x[0, :, at]), X[0, :, 1])


@pytest.mark.parametrize("key", [lambda at: slice(0, at), lambda at: slice(at, None), lambda at: slice(None, None, at),
                                 lambda at: (slice(None), slice(at - 1, at + 1)),
                                 lambda at: (0, slice(None, at), slice(None, None, -1))])
def test_a_slice_may_begin_end_and_step_at_variables(key):
    made = Arithmetic(x=X, at=np.array([2]))
    with program_guard(made.program, Program()):
        part = made.vars["x"][key(made.vars["at"])]
        grad, = gradients([part], [made.vars["x"]])
    want = np.zeros_like(X)
    want[key(2)] = 1
    np.testing.assert_array_equal(made.fetch(part), X[key(2)])
    np.testing.assert_array_equal(made.fetch(grad), want)


def test_the_gradient_of_a_part_is_zero_elsewhere():
    made = Arithmetic(x=X)
    with program_guard(made.program, Program()):
        grad, = gradients([made.vars["x"][1, ::-2, 1:3] * 2], [made.vars["x"]])
    want = np.zeros_like(X)
    want[1, ::-2, 1:3] = 2
    np.testing.assert_array_equal(made.fetch(grad), want)


@pytest.mark.parametrize("key, match", [
    ((0, 0, 0, 0), "has 3 dimension.s., but is indexed by 4"), ("a", "must be an integer"), ((..., ...), "one '...'"),
    (True, "must be an integer"), ([0, 1], "must be an integer")])
def test_an_index_that_means_nothing_is_named(key, match):
    with pytest.raises(UsageError, match=match):
        Arithmetic(x=X).build(lambda x: x[key])


def test_an_index_outside_is_named():
    with pytest.raises(ProgramError, match="index inside"):
        Arithmetic(x=X).build(lambda x: x[2])


def test_a_variable_of_known_length_can_be_walked():
    made = Arithmetic(a=A)
    first, second = made.build(lambda a: list(a))
    np.testing.assert_array_equal(made.fetch(second), A[1])
