"""Ops of program/ops/drawing.py."""

import numpy as np
import pytest

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program, program_guard
from tests.unit.program.ops.checking import Built, Case, StandInPlace, check_shapes_at_build, ids

SIZE = 20000
like = np.zeros((SIZE, 1))


def uniform(low, high):
    def check(drawn):
        assert low <= drawn.min() and drawn.max() < high
        assert abs(drawn.mean() - (low + high) / 2) < (high - low) * 0.01
        assert abs(drawn.std() - (high - low) / np.sqrt(12)) < (high - low) * 0.01
    return check


def normal(mean, std, cut=None):
    def check(drawn):
        assert abs(drawn.mean() - mean) < 0.03 * std
        assert abs(drawn.std() / std - (0.8796 if cut else 1.0)) < 0.02
        if cut:
            assert np.abs(drawn - mean).max() <= cut * std
    return check


def whole(low, high):
    def check(drawn):
        assert set(np.unique(drawn)) == set(range(low, high))
    return check


def order(drawn):
    assert sorted(drawn) == list(range(len(drawn))) and list(drawn) != sorted(drawn)


CHANCES = np.repeat([0.0, 0.25, 0.9, 1.0], SIZE // 4).reshape(-1, 1)


def coins(drawn):
    for chance, part in zip((0.0, 0.25, 0.9, 1.0), drawn.reshape(4, -1)):
        assert set(part) <= {0.0, 1.0} and abs(part.mean() - chance) < (0.03 if 0 < chance < 1 else 1e-9)


def case(type, attrs, check, inputs=None, shape=(SIZE, 1)):
    made = Case(type, inputs or {}, {"seed": 3, **attrs}, {"Out": np.zeros(shape)})
    made.check = check
    return made


SHAPE = {"shape": [SIZE, 1]}
ROWS = {"shape": [-1, 1]}
CASES = [
    case("uniform_random", SHAPE, uniform(-1, 1)),
    case("uniform_random", {**SHAPE, "min": 2.0, "max": 5.0, "dtype": "float64"}, uniform(2, 5)),
    case("uniform_random", {"shape": [-1, -1]}, uniform(-1, 1),
         {"ShapeTensorList": [np.array([SIZE]), np.array([1])]}),
    case("gaussian_random", {**SHAPE, "mean": 1.0, "std": 2.0}, normal(1, 2)),
    case("truncated_gaussian_random", {**SHAPE, "mean": 1.0, "std": 2.0}, normal(1, 2, cut=2)),
    case("uniform_random_batch_size_like", {**ROWS, "min": 0.0}, uniform(0, 1), {"Input": like}),
    case("gaussian_random_batch_size_like", ROWS, normal(0, 1), {"Input": like}),
    case("randint", {**SHAPE, "low": -2, "high": 3}, whole(-2, 3)),
    case("randperm", {"n": 50}, order, shape=(50,)),
    case("bernoulli", {}, coins, {"X": CHANCES}, shape=CHANCES.shape),
]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_what_is_drawn_has_the_distribution(case):
    drawn, = Built(case).run(["Out_out_0"])
    case.check(drawn)
    check_shapes_at_build(case)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_the_device_draws_the_same(case):
    built = Built(case)
    assert (built.run(["Out_out_0"])[0] == built.run(["Out_out_0"], StandInPlace())[0]).all()


def program_with(seed=0, persistable=False, op_seed=0, attrs=()):
    program = Program()
    program.random_seed = seed
    with program_guard(program, Program()):
        block = program.global_block()
        for name in ("a", "b"):
            block.create_var(name=name, shape=[3], persistable=persistable)
            block.append_op("uniform_random", outputs={"Out": [name]},
                            attrs={"shape": [3], "seed": op_seed, **dict(attrs)})
    return program


def draws(program, times=2):
    executor, scope = Executor(), Scope()
    return [executor.run(program, fetch_list=["a", "b"], scope=scope) for _ in range(times)]


def test_each_op_and_each_run_draws_anew():
    (a, b), (c, d) = draws(program_with(seed=1))
    assert len({tuple(one) for one in (a, b, c, d)}) == 4


def test_a_seed_repeats_the_job():
    assert np.array_equal(draws(program_with(seed=1)), draws(program_with(seed=1)))
    assert not np.array_equal(draws(program_with(seed=1)), draws(program_with(seed=2)))


def test_a_parameter_with_a_seed_is_drawn_the_same_at_every_run():
    first, second = draws(program_with(seed=1, persistable=True))
    assert np.array_equal(first, second)


def test_a_recomputed_op_draws_what_the_original_drew():
    (a, b), _ = draws(program_with(seed=1, attrs={"random_name": "a"}))
    assert np.array_equal(a, b)
    assert np.array_equal(a, draws(program_with(seed=1))[0][0])
