"""Operators of variables give what numpy gives for their values."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program import variable_math  # noqa: F401
from fleet_mpi.program.backward import gradients
from fleet_mpi.program.executor import Executor
from fleet_mpi.program.program import Program, program_guard
from fleet_mpi.program.scope import Scope

A = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
B = np.array([[2.0, 3.0, -1.0], [1.0, 0.5, 2.0]], np.float32)
N = np.array([[7, -7, 2], [3, 0, 5]])
M = np.array([[2, 3, 4], [-2, 5, 3]])


class Bench:
    """A program with one variable per array; ``run`` evaluates an expression of them."""

    def __init__(self, batch=False, **arrays):
        self.program, self.feed, self.batch = Program(), arrays, batch
        self.vars = {name: self.program.global_block().create_var(
            name=name, shape=([-1] + list(array.shape[1:])) if batch else array.shape, dtype=array.dtype,
            is_data=True, stop_gradient=False) for name, array in arrays.items()}

    def build(self, expression):
        with program_guard(self.program, Program()):
            return expression(**self.vars)

    def run(self, expression):
        return self.fetch(self.build(expression))

    def fetch(self, var):
        found, = Executor().run(self.program, feed=self.feed, fetch_list=[var], scope=Scope())
        return found

    @property
    def types(self):
        return [op.type for op in self.program.global_block().ops]


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]


@pytest.mark.parametrize("use", ARITHMETIC, ids=lambda use: use.__name__)
@pytest.mark.parametrize("kind", ["float", "int"])
def test_two_variables(use, kind):
    a, b = (A, B) if kind == "float" else (N, M)
    found = Bench(a=a, b=b).run(lambda a, b: use(a, b))
    np.testing.assert_allclose(found, use(a, b), rtol=1e-6)


@pytest.mark.parametrize("use", ARITHMETIC + [operator.pow], ids=lambda use: use.__name__)
@pytest.mark.parametrize("number", [2, 0.5, -3, np.float32(1.5), np.int64(4), True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_variable_and_a_number(use, number, side):
    a = np.array([[2, 3, 4], [1, 5, 2]], np.float32)
    one = (lambda a: use(number, a)) if side == "left" else (lambda a: use(a, number))
    want = one(a.astype(np.float64))
    bench = Bench(a=a)
    found = bench.run(one)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=2e-5)


def test_numbers_become_attributes_where_that_serves():
    bench = Bench(a=A)
    bench.run(lambda a: (2 * a + 1 - a / 4) ** 2 - (3 - a))
    assert bench.types == ["scale", "scale", "scale", "elementwise_sub", "pow", "scale", "elementwise_sub"]
    bench = Bench(a=A)
    bench.run(lambda a: 1 / a)
    assert bench.types == ["fill_constant", "elementwise_div"]


@pytest.mark.parametrize("expression, want", [
    (lambda n: n + 2, N + 2), (lambda n: 5 - n, 5 - N), (lambda n: n * 3.0, N * 3), (lambda n: n // 2, N // 2),
    (lambda n: n ** 2, N ** 2), (lambda n: -n, -N), (lambda n: n + 2 ** 60, N + 2 ** 60)])
def test_integers_stay_integers_beside_whole_numbers(expression, want):
    found = Bench(n=N).run(expression)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("expression, want", [
    (lambda n, a: n + 0.5, N + 0.5), (lambda n, a: n / 2, N / 2), (lambda n, a: 1 / (n * n + 1), 1 / (N * N + 1)),
    (lambda n, a: n * a, N * A), (lambda n, a: a * n, N * A), (lambda n, a: (n > 2) * 1.5, (N > 2) * 1.5),
    (lambda n, a: (n > 2) + 0.0, N > 2), (lambda n, a: n + np.inf, N + np.inf)])
def test_integers_beside_fractions_become_floats(expression, want):
    found = Bench(n=N, a=A).run(expression)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=1e-6)


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("use", COMPARISONS, ids=lambda use: use.__name__)
def test_comparisons_give_bool(use):
    for found, want in [(Bench(a=N, b=M).run(lambda a, b: use(a, b)), use(N, M)),
                        (Bench(a=N).run(lambda a: use(a, 3)), use(N, 3)),
                        (Bench(a=N).run(lambda a: use(2.5, a)), use(2.5, N)),
                        (Bench(a=A).run(lambda a: use(a, 0.5)), use(A, 0.5))]:
        assert found.dtype == bool
        np.testing.assert_array_equal(found, want)


def test_logic_of_bool_variables():
    found = Bench(a=A, b=B).run(lambda a, b: ~((a > 0) & (b > 0)) ^ ((a > 1) | (b > 1)))
    np.testing.assert_array_equal(found, ~((A > 0) & (B > 0)) ^ ((A > 1) | (B > 1)))


def test_unary_and_matrix_operators():
    bench = Bench(a=A, b=B)
    np.testing.assert_allclose(bench.run(lambda a, b: abs(-a) @ b.T), abs(A) @ B.T, rtol=1e-6)


def test_a_result_per_row_lies_along_the_rows():
    found = Bench(batch=True, a=A, rows=np.array([2.0, 4.0], np.float32)).run(lambda a, rows: a / rows)
    np.testing.assert_allclose(found, A / [[2], [4]], rtol=1e-6)


def test_gradients_flow_through_operators():
    bench = Bench(a=A, b=B)
    with program_guard(bench.program, Program()):
        a, b = bench.vars["a"], bench.vars["b"]
        grad, = gradients([(2 * a - a / b) ** 2], [a])
    np.testing.assert_allclose(bench.fetch(grad), 2 * (2 * A - A / B) * (2 - 1 / B), rtol=1e-5)


def test_variables_are_hashed_and_found_by_identity():
    bench = Bench(a=A, b=B, c=A[:1, :2], n=N)
    a, b, c, n = bench.vars.values()
    assert {a: 1}[a] == 1 and b not in {a: 1}
    assert a in [c, b, a] and b not in [a, c, n] and [c, b, a].index(a) == 2
    assert (a != b) and not (a == b)
    assert a is not None and a != None and not a == None  # noqa: E711
    assert (a == "a") is False


def test_the_truth_of_a_value_is_refused():
    a = Bench(a=A).vars["a"]
    with pytest.raises(ProgramError, match="no value while the program is built"):
        bool(a == 1.0)
    with pytest.raises(ProgramError, match="layers.cond"):
        bool(a > 1.0)


def test_what_cannot_be_combined_is_a_type_error():
    a = Bench(a=A).vars["a"]
    for use in (operator.add, operator.lt, operator.matmul):
        with pytest.raises(TypeError):
            use(a, "1")


def test_astype():
    found = Bench(a=A).run(lambda a: a.astype("int64"))
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
    found = Bench(batch=batch, x=X).run(lambda x: x[key])
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
    bench = Bench(x=x)
    var = bench.build(lambda x: x[key])
    dropped_all = want.ndim - keys.count(None) == 0
    shape = want.shape if not dropped_all else (1,) * max(keys.count(None), 1)
    assert var.shape == shape
    np.testing.assert_array_equal(bench.fetch(var), want.reshape(shape))


def test_a_variable_of_positions_picks_rows():
    picked = np.array([2, 0, 2])
    found = Bench(x=X.reshape(6, 4), at=picked).run(lambda x, at: x[at])
    np.testing.assert_array_equal(found, X.reshape(6, 4)[picked])
    one = np.array([1])
    np.testing.assert_array_equal(Bench(x=X, at=one).run(lambda x, at: x[at]), X[1])
    np.testing.assert_array_equal(Bench(x=X, at=one).run(lambda x, at: x[0, :, at]), X[0, :, 1])


def test_the_gradient_of_a_part_is_zero_elsewhere():
    bench = Bench(x=X)
    with program_guard(bench.program, Program()):
        grad, = gradients([bench.vars["x"][1, ::-2, 1:3] * 2], [bench.vars["x"]])
    want = np.zeros_like(X)
    want[1, ::-2, 1:3] = 2
    np.testing.assert_array_equal(bench.fetch(grad), want)


@pytest.mark.parametrize("key, match", [
    ((0, 0, 0, 0), "has 3 dimension.s., but is indexed by 4"), ("a", "must be an integer"), ((..., ...), "one '...'"),
    (True, "must be an integer"), ([0, 1], "must be an integer")])
def test_an_index_that_means_nothing_is_named(key, match):
    with pytest.raises(UsageError, match=match):
        Bench(x=X).build(lambda x: x[key])


def test_an_index_outside_is_named():
    with pytest.raises(ProgramError, match="index inside"):
        Bench(x=X).build(lambda x: x[2])


def test_a_variable_of_known_length_can_be_walked():
    bench = Bench(a=A)
    first, second = bench.build(lambda a: list(a))
    np.testing.assert_array_equal(bench.fetch(second), A[1])
