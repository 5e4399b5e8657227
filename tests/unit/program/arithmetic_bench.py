"""A program with three variables and their values, for the tests of layers of arithmetic."""

import numpy as np

from fleet_mpi.program.executor import Executor
from fleet_mpi.program.program import Program
from fleet_mpi.program.scope import Scope

A = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
B = np.array([[2.0, 3.0, -1.0], [1.0, 0.5, 2.0]], np.float32)
N = np.array([[7, -7, 2], [3, 0, 5]])


class Bench:
    """A program with the variables a, b (floats) and n (integers), and their values."""

    def __init__(self):
        self.program, self.startup = Program(), Program()
        for name, array in (("a", A), ("b", B), ("n", N)):
            setattr(self, name, self.program.global_block().create_var(
                name=name, shape=(-1, 3), dtype=array.dtype, is_data=True, stop_gradient=False))

    def run(self, *fetches):
        return Executor().run(self.program, feed={"a": A, "b": B, "n": N}, fetch_list=list(fetches), scope=Scope())

    @property
    def ops(self):
        return self.program.global_block().ops
