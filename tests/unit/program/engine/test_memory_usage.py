"""Memory estimates from shapes."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.memory_usage import memory_usage
from fleet_mpi.program.graph.program import Program, default_main_program
from tests.unit.program.building import data, mul, parameter


def test_the_estimate_counts_the_batch():
    x = data("x", [-1, 256])
    parameter("w", [[0] * 256])
    mul(x, x)
    # x and the product 10 x 256, w 256, four bytes each.
    assert memory_usage(default_main_program(), 10) == (11.0, 21.0, "KB")


def test_an_empty_program_needs_nothing():
    assert memory_usage(Program(), 1) == (0, 0, "B")


@pytest.mark.parametrize("program, batch_size", ((Program(), 0), (Program(), 2.5), ("program", 1)))
def test_impossible_arguments_are_refused(program, batch_size):
    with pytest.raises(UsageError, match="memory_usage: "):
        memory_usage(program, batch_size)
