"""fleet_mpi/program/engine/randomness.py: where the random numbers of a program come from."""

import os
import subprocess
import sys

import numpy as np
import pytest

from fleet_mpi.program.build.initializers import Uniform
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.tensor import create_parameter, uniform_random

DRAW = """
from fleet_mpi import fluid
fluid.layers.create_parameter([3], "float32", name="w", default_initializer=fluid.initializer.Uniform())
fluid.Executor().run(fluid.default_startup_program())
print(fluid.global_scope().find_var("w").get_tensor().numpy().tolist())
"""


def drawn_by_a_process(seed):
    result = subprocess.run([sys.executable, "-c", DRAW], env={**os.environ, "FLEET_MPI_SEED": seed},
                            capture_output=True, text=True, check=True, timeout=120)
    return result.stdout


def test_a_job_without_a_seed_draws_afresh_and_one_with_a_seed_does_not():
    assert drawn_by_a_process("0") != drawn_by_a_process("0")
    assert drawn_by_a_process("5") == drawn_by_a_process("5")


def parameter_drawn(seed, name="w", scope=None):
    scope = scope or Scope()
    default_startup_program().random_seed = seed
    create_parameter([4], "float32", name=name, default_initializer=Uniform())
    Executor().run(default_startup_program(), scope=scope)
    return scope.array(name).copy()


def test_a_seeded_parameter_is_drawn_the_same_at_every_run_and_by_every_executor():
    first = parameter_drawn(3)
    assert (parameter_drawn(3) == first).all()
    assert (parameter_drawn(4) != first).any()


def test_two_variables_of_one_program_are_drawn_apart():
    scope = Scope()
    assert (parameter_drawn(3, "v", scope) != parameter_drawn(3, "w", scope)).any()


@pytest.mark.parametrize("workers, equal", [((0, 0), True), ((0, 1), False)])
def test_a_step_can_be_replayed_and_workers_draw_apart(workers, equal):
    default_main_program().random_seed = 9
    drawn = uniform_random([8])
    runs = []
    for worker in workers:
        executor = Executor()
        executor.worker = worker
        runs.append([np.array(executor.run(fetch_list=[drawn], scope=Scope())[0]) for _ in range(1)])
    assert (runs[0][0] == runs[1][0]).all() == equal


def test_every_step_draws_anew():
    default_main_program().random_seed = 9
    drawn, executor = uniform_random([8]), Executor()
    first, second = (executor.run(fetch_list=[drawn])[0] for _ in range(2))
    assert (first != second).any()
