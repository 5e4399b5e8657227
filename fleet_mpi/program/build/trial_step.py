"""One step of a small network in programs and a scope of its own: shows that layers, backward and updates work here."""

import numpy as np

from fleet_mpi import notices
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import SGD


def run_check():
    """Train one step, and say so; what does not work raises."""
    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup), scope_guard(Scope()):
        loss = mean(fc(data("x", [4]), 2))
        SGD(0.1).minimize(loss)
        executor = Executor()
        executor.run(startup)
        executor.run(main, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
    notices.log().info("a step was trained in this process; python -m fleet_mpi doctor looks at MPI and its launcher")
