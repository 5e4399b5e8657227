"""fleet_mpi/program/engine/compiled.py."""

import numpy as np
import pytest

from fleet_mpi.errors import UnknownName, UsageError
from fleet_mpi.program.engine.compiled import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.math import increment
from fleet_mpi.program.layers.tensor import create_global_var
from tests.unit.program.building import add, data, mean, mul, parameter

X = np.ones((3, 2), "float32")


def test_a_compiled_program_gives_what_the_program_gives():
    loss = mean(mul(data("x", [-1, 2]), parameter("w", [1, 2])))
    exe = Executor()
    plain, = exe.run(feed={"x": X}, fetch_list=[loss])
    compiled = CompiledProgram(default_main_program()).with_data_parallel(
        loss_name=loss.name, build_strategy=BuildStrategy(), exec_strategy=ExecutionStrategy())
    again, = exe.run(compiled, feed={"x": X}, fetch_list=[loss.name])
    assert plain == again


def test_several_steps_at_once():
    steps = create_global_var([1], 0.0, "float32", persistable=True, name="steps")
    increment(steps)
    exe, strategy = Executor(), ExecutionStrategy()
    exe.run(default_startup_program())
    strategy.num_iteration_per_run = 3
    compiled = CompiledProgram(default_main_program()).with_data_parallel(exec_strategy=strategy)
    assert [float(exe.run(compiled, fetch_list=[steps])[0]) for _ in range(2)] == [3.0, 6.0]


def test_the_oldest_executor_takes_a_list_of_feeds():
    out = add(data("x", [-1, 2]), parameter("w", [1, 2]))
    exe = ParallelExecutor(use_cuda=False, loss_name=None, main_program=default_main_program())
    assert exe.run([out.name], feed=[{"x": X}])[0].shape == (3, 2)
    assert exe.run([out.name], feed=[{"x": X}, {"x": X[:1]}])[0].shape == (4, 2)


@pytest.mark.parametrize("strategy", [BuildStrategy, ExecutionStrategy])
def test_an_option_that_does_not_exist_is_refused_with_the_nearest(strategy):
    known = next(iter(strategy.defaults))
    with pytest.raises(UnknownName, match=known):
        setattr(strategy(), known + "x", 1)


def test_only_programs_can_be_compiled():
    with pytest.raises(UsageError, match="Program"):
        CompiledProgram("main")


def test_two_strategies_share_no_list():
    one, other = BuildStrategy(), BuildStrategy()
    one.trainers_endpoints.append("host:1")
    assert other.trainers_endpoints == [] and "trainers_endpoints" in repr(one)
