"""Every test gets fresh programs, names and scope."""

import pytest

from fleet_mpi.program import unique_name
from fleet_mpi.program.program import Program, program_guard
from fleet_mpi.program.scope import Scope, scope_guard


@pytest.fixture(autouse=True)
def fresh():
    with program_guard(Program(), Program()), unique_name.guard(), scope_guard(Scope()):
        yield
