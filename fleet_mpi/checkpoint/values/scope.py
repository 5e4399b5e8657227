"""Values that lie in the scope of this process; and the check that saved values fit a program."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.variables import choose, program_of
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.ops.sparse_table import growing_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import DTypeLike

    from fleet_mpi.checkpoint.folders.transaction import Save
    from fleet_mpi.checkpoint.variables import AnyProgram, Predicate
    from fleet_mpi.program.engine.scope import Scope, Tensor
    from fleet_mpi.program.graph.variable import Variable


class ScopeValues:
    """A program's values, where all of them are in the global scope."""

    def __init__(self, program: AnyProgram) -> None:
        self.program = program_of(program)

    def choose(self, vars: Iterable[Variable | str] | None = None,
               predicate: Predicate | None = None) -> dict[str, Variable]:
        """The variables meant."""
        return choose(self.program, vars, predicate)

    def at_one_moment(self, chosen: dict[str, Variable]) -> contextlib.AbstractContextManager[None]:
        """Nothing changes them meanwhile."""
        return contextlib.nullcontext()

    def add(self, save: Save, chosen: dict[str, Variable], filename: str | None = None) -> None:
        """Let a save have the values that variables have in the global scope."""
        tensors = [(name, value_in(global_scope(), name)) for name in chosen]
        for name, tensor in tensors:
            # Not statistics of batch normalisation, which are each worker's own.
            if getattr(chosen[name], "trainable", False):
                save.has(tensor.array)
        formats.of(filename).write(save, (Value(name, tensor.array, tensor.lod_offsets) for name, tensor in tensors))


def value_in(scope: Scope, name: str) -> Tensor:
    """The tensor of a variable that is to be saved; UsageError where it has no value."""
    holder = scope.find_var(name)
    if holder is None or holder.tensor.array is None:
        raise UsageError(f"variable {name!r} has no value to save: run the startup program in this scope first")
    return holder.tensor


def put_values(scope: Scope, chosen: dict[str, Variable], values: Iterable[Value], dirname: str) -> None:
    """Let a scope have values that were read from a folder, if all fit the variables chosen.

    All are read and checked before the scope is changed: a checkpoint that does not fit changes nothing.
    """
    values = list({value.name: value for value in values}.values())
    refuse_misfits(chosen, values, dirname)
    for name, array, lod in values:
        tensor = scope.var(name).get_tensor()
        tensor.set(array)
        tensor.lod_offsets = lod


def refuse_misfits(chosen: dict[str, Variable], values: Iterable[Value], dirname: str) -> None:
    """Raise CheckpointDamaged where values do not fit the variables chosen."""
    growing: set[str] = set().union(
        *(growing_variables(program) for program in {var.block.program for var in chosen.values()}))
    refuse_differences(dirname,
                       {name: list(differences(name, _shape(chosen[name], name in growing), chosen[name]._dtype,
                                               array)) for name, array, _ in values})


def differences(name: str, shape: tuple[int, ...], dtype: DTypeLike, array: np.ndarray) -> Iterator[str]:
    """Words on how a saved array differs from what it is for; nothing where it fits. -1 fits every size."""
    shape_fits = len(array.shape) == len(shape) and all(want in (-1, got) for want, got in zip(shape, array.shape))
    if not shape_fits or array.dtype != np.dtype(dtype):
        yield f"{name}: program {dtype}{list(shape)}, file {array.dtype}{list(array.shape)}"


def refuse_differences(dirname: str, found: dict[str, list[str]]) -> None:
    """Raise CheckpointDamaged with the words of ``differences``, by name, if there are any."""
    wrong = [text for texts in found.values() for text in texts]
    if wrong:
        raise CheckpointDamaged(f"{dirname}: the saved variables do not fit this program: " + "; ".join(wrong[:20]))


def _shape(var: Variable, may_be_longer: bool) -> tuple[int, ...]:
    return (-1,) + tuple(var.shape[1:]) if may_be_longer else tuple(var.shape)
