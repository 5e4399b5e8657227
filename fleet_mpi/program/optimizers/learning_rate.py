"""The learning rate of an optimizer as a variable of a program.

It is given as a number, as a variable (a schedule's output), or as a 2.x scheduler whose value is
written into the variable before every run.
"""

from fleet_mpi import arrays
from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.engine import scope as scopes
from fleet_mpi.program.graph import program as programs, unique_name
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.optimizers.lr import LRScheduler, checked_rate


class LearningRate:
    """One optimizer's learning rate: what was given, and its variable in each program."""

    def __init__(self, given, owner):
        self.owner = owner
        if not isinstance(given, (Variable, LRScheduler)):
            given = self._number(given)
        self.given = given
        self._variables = {}  # program -> variable
        self._inits = []      # the startup ops that fill them
        self._multiples = {}  # (program, block, factor) -> variable
        if isinstance(given, Variable):
            self._variables[given.block.program] = given

    def _number(self, value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
            raise UsageError(f"{self.owner}: learning_rate must be a number, a variable of the program or a "
                             f"paddle.optimizer.lr scheduler, got {type(value).__name__}")
        return checked_rate(self.owner, value)

    def variable(self, program):
        """The variable in a program, or None where it is not made yet."""
        return self._variables.get(program)

    def create(self, program, dtype="float32"):
        """The variable in a program: a schedule's own, else ``learning_rate_0``, made and initialised if need be."""
        if program not in self._variables:
            if isinstance(self.given, Variable):
                raise UsageError(f"{self.owner}: the learning-rate variable {self.given.name!r} belongs to another "
                                 f"program: make the schedule under the same program_guard as the loss")
            self._variables[program] = self._make(program, dtype)
        return self._variables[program]

    def _make(self, program, dtype):
        name = unique_name.generate("learning_rate")
        startup = programs.default_startup_program().global_block()
        fields = dict(name=name, shape=[1], dtype=dtype, persistable=True, stop_gradient=True)
        made = program.global_block().create_var(**fields)
        twin = startup.create_var(**fields)
        self._inits.append(Constant(self._now())(twin, startup))
        if isinstance(self.given, LRScheduler):
            program._before_run.append(Follow(self.given, name))
        return made

    def _now(self):
        return float(self.given() if isinstance(self.given, LRScheduler) else self.given)

    def times(self, program, factor, dtype="float32"):
        """The variable for a parameter whose own factor is not 1: a scale op, shared by equal factors."""
        rate = self.create(program, dtype)
        if factor == 1.0:
            return rate
        block = program.current_block()
        key = program, block.idx, factor
        if key not in self._multiples:
            with program._lr_schedule_guard(is_with_opt=True), name_scope("scale_with_param_lr"):
                out = block.create_var(name=unique_name.generate(f"{rate.name}@TIMES"), shape=[1],
                                       dtype=rate.dtype, stop_gradient=True)
                block.append_op("scale", {"X": [rate]}, {"Out": [out]}, {"scale": factor})
            self._multiples[key] = out
        return self._multiples[key]

    def value(self):
        """The rate now, as a number."""
        if isinstance(self.given, LRScheduler):
            return float(self.given())
        for variable in self._variables.values():
            array = scopes.global_scope().array(variable.name)
            if array is not None:
                return float(arrays.to_host(array).reshape(-1)[0])
        if isinstance(self.given, Variable):
            raise UsageError(f"{self.owner}: the schedule {self.given.name!r} has no value outside of a run: put the "
                             f"variable into fetch_list")
        return self.given

    def change(self, value):
        """Put another number into the programs' variables and into their initialisers."""
        if not isinstance(self.given, float):
            raise UsageError(f"{self.owner}.set_lr: a {type(self.given).__name__} decides the learning rate; "
                             f"change that one, or give the optimizer a number")
        self.given = self._number(value)
        for op in self._inits:
            op._set_attr("value", self.given)
        for variable in self._variables.values():
            array = scopes.global_scope().array(variable.name)
            if array is not None:
                array.fill(self.given)


class Follow:
    """Called before every run of a program: writes a scheduler's value into the learning-rate variable."""

    def __init__(self, scheduler, name):
        self.scheduler, self.name = scheduler, name

    def __call__(self, scope):
        array = scope.array(self.name)
        if array is not None:
            array.fill(float(self.scheduler.last_lr))
