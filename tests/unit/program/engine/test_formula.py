"""Formulas give what numpy gives, wherever the output lies."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.program.engine import formula as f
from fleet_mpi.testing import device

SHAPE = (3, 4)


class Bench:
    """What ``bind`` needs of a Call, counting the scratch it takes."""

    def __init__(self, xp=np):
        self.xp, self.taken = xp, []

    def scratch(self, shape, dtype):
        self.taken.append(tuple(shape))
        return self.xp.empty(shape, dtype)


def inputs_of(seed, shape=SHAPE):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 2.0, shape) for _ in range(2)]


leaves = st.sampled_from([lambda a, b: a, lambda a, b: b, lambda a, b: 1.5])


def grown(parts):
    """Expressions from smaller ones; the same functions take terms and arrays."""
    def both(combine):
        return st.builds(lambda one, other: lambda a, b: combine(one(a, b), other(a, b)), parts, parts)

    def shared(combine):
        def made(one):
            def run(a, b):
                value = one(a, b)
                return combine(value, value)
            return run
        return st.builds(made, parts)
    return (both(lambda p, q: p + q) | both(lambda p, q: p * q - q) | both(lambda p, q: 2.0 - p)
            | shared(lambda p, q: p * q + p) | both(lambda p, q: (p > q) * 1.0))


expressions = st.recursive(leaves, grown, max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(expressions, st.sampled_from(["apart", "first", "second"]), st.sampled_from([np, device]), st.integers(0, 9))
def test_a_formula_equals_its_expression_wherever_the_output_lies(expression, where, xp, seed):
    a, b = inputs_of(seed)
    want = np.broadcast_to(np.asarray(expression(a, b), float), SHAPE)
    arrays = [xp.asarray(a), xp.asarray(b)]
    out = {"apart": xp.empty(SHAPE), "first": arrays[0], "second": arrays[1]}[where]
    f.bind(Bench(xp), expression, arrays, out)()
    np.testing.assert_allclose(out if xp is np else device.asnumpy(out), want, rtol=1e-12)


def test_a_call_repeats_with_the_values_of_the_day():
    x, out = np.ones(3), np.empty(3)
    run = f.bind(Bench(), lambda x: 2 * x + 1, [x], out)
    run()
    assert out.tolist() == [3, 3, 3]
    x[:] = [4, 5, 6]
    run()
    assert out.tolist() == [9, 11, 13]


@pytest.mark.parametrize("size", [0, 1, f.BLOCK - 1, f.BLOCK, f.BLOCK + 1, 3 * f.BLOCK])
def test_every_block_is_filled_and_scratch_is_no_larger_than_one(size):
    bench, x, out = Bench(), np.arange(size, dtype=np.float32), np.full(size, -1, np.float32)
    f.bind(bench, lambda x: (x + 1) * (x + 2) / (x + 3), [x], out)()
    np.testing.assert_allclose(out, (x + 1) * (x + 2) / (x + 3), rtol=1e-6)
    assert all(shape[0] <= f.BLOCK for shape in bench.taken)


def test_the_output_is_scratch_too_where_it_lies_apart():
    x = np.ones(4)
    apart, within = Bench(), Bench()
    formula = lambda x: (x + 1) * (x + 2)
    f.bind(apart, formula, [x], np.empty(4))
    f.bind(within, formula, [x], x)
    assert (len(apart.taken), len(within.taken)) == (1, 1)
    chain = lambda x: f.exp(-x) * x
    apart, within = Bench(), Bench()
    f.bind(apart, chain, [x], np.empty(4))
    f.bind(within, chain, [x], x)
    assert (len(apart.taken), len(within.taken)) == (0, 1)


def test_arrays_that_are_not_contiguous_serve_too():
    x, out = np.arange(12.0).reshape(3, 4).T, np.empty((4, 3))
    f.bind(Bench(), lambda x: x * x + 1, [x], out)()
    np.testing.assert_array_equal(out, x * x + 1)


def test_a_constant_and_a_plain_input_need_no_steps():
    x, out = np.arange(3.0), np.empty(3)
    f.bind(Bench(), lambda x: 0, [x], out)()
    assert out.tolist() == [0, 0, 0]
    f.bind(Bench(), lambda x: x, [x], out)()
    assert out.tolist() == [0, 1, 2]
