"""A program that ``fleet_mpi.transpile`` makes runs, whatever else is imported."""

import subprocess
import sys

SCRIPT = """
import numpy as np
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.math import square_error_cost
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import SGD
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspiler
import sys
x, y = data("x", [4]), data("y", [1])
loss = mean(square_error_cost(fc(x, 1), y))
SGD(0.1).minimize(loss)
job = DistributeTranspiler()
job.transpile(0, pservers="a:1", trainers=1)
assert "fleet_mpi.runtime" not in sys.modules
program, executor = job.get_trainer_program(), Executor()
executor.run(default_startup_program())
feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
first, *_, last = [executor.run(program, feed=feed, fetch_list=[loss])[0].item() for _ in range(5)]
assert last < first
"""


def test_a_program_made_by_transpile_alone_trains():
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
