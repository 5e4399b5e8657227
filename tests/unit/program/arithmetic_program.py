"""A program whose fed variables have the names and values of arrays, for the tests of arithmetic."""

import numpy as np

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program, program_guard

A = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
B = np.array([[2.0, 3.0, -1.0], [1.0, 0.5, 2.0]], np.float32)
N = np.array([[7, -7, 2], [3, 0, 5]])


class Arithmetic:
    """A program with one variable per array; ``run`` evaluates an expression of them.

    batch: the first size of each variable is left open.
    """

    def __init__(self, batch=False, **arrays):
        self.program, self.feed = Program(), arrays
        self.vars = {name: self.program.global_block().create_var(
            name=name, shape=([-1] + list(array.shape[1:])) if batch else array.shape, dtype=array.dtype,
            is_data=True, stop_gradient=False) for name, array in arrays.items()}

    def build(self, expression):
        """What an expression of the variables, taken by name, gives in the program."""
        with program_guard(self.program, Program()):
            return expression(**self.vars)

    def run(self, expression):
        return self.fetch(self.build(expression))

    def fetch(self, var):
        found, = Executor().run(self.program, feed=self.feed, fetch_list=[var], scope=Scope())
        return found

    @property
    def types(self):
        return [op.type for op in self.program.global_block().ops]
