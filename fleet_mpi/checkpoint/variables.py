"""Which variables of a program a save or load means. Knows programs, neither values nor files."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.program.graph.registry import GRAD
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.graph.variable import Parameter, Variable
from fleet_mpi.program.ops.sparse_table import INDEX, KEYS

if TYPE_CHECKING:
    from fleet_mpi.program.engine.compiled import CompiledProgram

# Kinds of variable that hold no saved values.
_UNSAVED = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW)

Predicate = Callable[[Variable], bool]
AnyProgram: TypeAlias = "Program | CompiledProgram | None"  # what a script may say; None is the default program


def is_persistable(var: Variable) -> bool:
    """Whether a variable keeps its value between runs, and so belongs into a checkpoint.

    A gradient that a worker sends from where it lies is persistable only for that.
    """
    return var.persistable and var.type not in _UNSAVED and not var.name.endswith(GRAD)


def is_parameter(var: Variable) -> bool:
    """Whether a variable is a parameter, or says which ids the rows of one belong to."""
    return isinstance(var, Parameter) or var.persistable and var.name.endswith((KEYS, INDEX))


def is_other(var: Variable) -> bool:
    """Whether a variable persists and is no parameter."""
    return is_persistable(var) and not is_parameter(var)


def choose(main_program: AnyProgram, vars: Iterable[Variable | str] | None,
           predicate: Predicate | None) -> dict[str, Variable]:
    """The variables meant, by name and in name order."""
    program = program_of(main_program)
    if vars is None:
        vars = [var for var in program.list_vars() if predicate is None or predicate(var)]
    block = program.global_block()
    named = [var if isinstance(var, Variable) else block.var(var) for var in vars]
    return {var.name: var for var in sorted(named, key=lambda var: var.name) if var.type not in _UNSAVED}


def program_of(main_program: AnyProgram) -> Program:
    """The Program that a script means: the default one, or that of a CompiledProgram."""
    program = getattr(main_program, "program", main_program) or default_main_program()
    if not isinstance(program, Program):
        raise UsageError(f"expected a Program, got {type(program).__name__}")
    return program
