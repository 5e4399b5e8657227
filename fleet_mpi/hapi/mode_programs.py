"""One static program for each thing that a model does: training, evaluation, prediction.

The network's parameters belong to the program that was the default one when it was made. Its ops are built there, so
that arithmetic with a parameter comes to the right place, taken out as a program of their own, and removed again.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field

from fleet_mpi.hapi import together
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program, copy_program, program_guard, prune
from fleet_mpi.program.graph.structures import as_list
from fleet_mpi.program.layers.math import sums

TRAIN, EVAL, PREDICT = "train", "eval", "predict"
COMMUNICATES = "c_"  # the types of ops between workers begin with it


@dataclass
class ModeProgram:
    """A program to run, and the names of what is fed and fetched."""

    program: Program
    inputs: list
    outputs: list
    labels: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    states: list = field(default_factory=list)  # of each metric, what its update takes

    @property
    def measured(self):
        """The names to fetch of what is measured, in order: losses, metrics' states."""
        return [*self.losses, *(name for names in self.states for name in names)]


class Builder:
    """Makes the programs of one network."""

    def __init__(self, network, home, startup):
        self.network, self.home, self.startup = network, home, startup

    def build(self, mode, inputs, labels, loss=None, metrics=(), optimizer=None):
        """The program of a mode for these descriptions, and the startup program that makes its values."""
        startup = copy_program(self.startup)
        with scratch(self.home), program_guard(self.home, startup):
            made = self._forward(mode, inputs, labels, loss, metrics)
        if mode == TRAIN and optimizer is not None:
            self._minimize(made, startup, optimizer)
        return made, startup

    def _forward(self, mode, inputs, labels, loss, metrics):
        """Build the ops in the home program, and copy those that matter."""
        block = self.home.global_block()
        first = len(block.ops)
        was_training = self.network.training
        (self.network.train if mode == TRAIN else self.network.eval)()
        fed = [spec.declare(f"input_{i}") for i, spec in enumerate(inputs)]
        answers = [spec.declare(f"label_{i}") for i, spec in enumerate(labels)] if mode != PREDICT else []
        outputs = as_list(self.network(*fed))
        losses = as_list(loss(*outputs, *answers)) if loss is not None and mode != PREDICT else []
        states = [as_list(one.compute(*outputs, *answers)) for one in metrics] if mode != PREDICT else []
        (self.network.train if was_training else self.network.eval)()
        kept = [name for op in block.ops[first:] for name in op.output_arg_names
                if block.find_var(name) is not None and block.find_var(name).persistable]
        program = prune(self.home, [*losses, *(one for state in states for one in state), *outputs, *kept])
        program = program if mode == TRAIN else program.clone(for_test=True)
        return ModeProgram(program, _names(fed), _names(outputs), _names(answers), _names(losses),
                           [_names(state) for state in states])

    def _minimize(self, made, startup, optimizer):
        block = made.program.global_block()
        with program_guard(made.program, startup):
            losses = [block.var(name) for name in made.losses]
            together.distributed(optimizer).minimize(losses[0] if len(losses) == 1 else sums(losses),
                                                     startup_program=startup)


def initialise(startup, executor):
    """Run a startup program but for the ops whose outputs have values already, as loaded or trained ones have."""
    scope, block = global_scope(), startup.global_block()
    block.ops = [op for op in block.ops if op.type.startswith(COMMUNICATES)
                 or any(scope.array(name) is None for name in op.output_arg_names)]
    if block.ops:
        startup.touch()
        executor.run(startup)


@contextmanager
def scratch(program):
    """Within the block a program may be built on; afterwards its ops, blocks and passing variables are as before."""
    block = program.global_block()
    ops, blocks, names = len(block.ops), len(program.blocks), set(block.vars)
    try:
        yield
    finally:
        del block.ops[ops:], program.blocks[blocks:]
        block.vars = {name: var for name, var in block.vars.items() if name in names or var.persistable}
        program.touch()


def _names(variables):
    return [one.name for one in variables]
