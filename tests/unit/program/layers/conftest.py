"""The variables that layers of arithmetic are tried on."""

import pytest

from fleet_mpi.program.graph.program import program_guard
from tests.unit.program.arithmetic_program import A, Arithmetic, B, N


@pytest.fixture
def arithmetic():
    """Layers add to a program with the variables a, b (floats) and n (integers)."""
    made = Arithmetic(batch=True, a=A, b=B, n=N)
    made.a, made.b, made.n = made.vars.values()
    with program_guard(made.program):
        yield made
