"""Saving and loading a program's variables: one file per variable, or one file for all.

Files have the original's tensor format (tensor_file.py) and are replaced whole. Loading first reads and
checks everything, then changes the scope: a checkpoint that does not fit changes nothing.
"""

import os

import numpy as np

from fleet_mpi.checkpoint.replacing import replacing
from fleet_mpi.checkpoint.tensor_file import read_tensor, read_tensors, write_tensor
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.program.ops.sparse_table import INDEX, KEYS, growing_variables
from fleet_mpi.program.program import Program, default_main_program
from fleet_mpi.program.scope import global_scope
from fleet_mpi.program.types import VarType
from fleet_mpi.program.variable import Parameter, Variable

# Kinds of variable that hold no saved values.
_UNSAVED = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW)


def is_persistable(var):
    """Whether a variable keeps its value between runs, and so belongs into a checkpoint."""
    return var.persistable and var.type not in _UNSAVED


def is_parameter(var):
    """Whether a variable is a parameter, or says which ids the rows of one belong to."""
    return isinstance(var, Parameter) or var.persistable and var.name.endswith((KEYS, INDEX))


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Save every persistable variable: parameters, optimizer state, counters."""
    save_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def save_params(executor, dirname, main_program=None, filename=None):
    """Save the parameters."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Load what ``save_persistables`` wrote."""
    load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def load_params(executor, dirname, main_program=None, filename=None):
    """Load what ``save_params`` wrote."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Save some variables of a program: those listed, or those for which ``predicate(var)`` holds."""
    chosen, scope = choose(main_program, vars, predicate), global_scope()
    tensors = {name: _value(scope, name) for name in chosen}
    if filename is not None:
        with replacing(os.path.join(dirname, filename)) as stream:
            for tensor in tensors.values():
                write_tensor(stream, tensor.array, tensor.lod_offsets)
        return
    os.makedirs(dirname, exist_ok=True)
    for name, tensor in tensors.items():
        with replacing(os.path.join(dirname, name)) as stream:
            write_tensor(stream, tensor.array, tensor.lod_offsets)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Load some variables of a program; names every variable that is missing or does not fit."""
    chosen, scope = choose(main_program, vars, predicate), global_scope()
    found = _read_together(dirname, filename, chosen) if filename is not None else _read_each(dirname, chosen)
    growing = set().union(*(growing_variables(program) for program in {var.block.program for var in chosen.values()}))
    wrong = [text for name, (array, _) in found.items()
             for text in _difference(chosen[name], array, may_be_longer=name in growing)]
    if wrong:
        raise CheckpointDamaged(f"{dirname}: the saved variables do not fit this program: " + "; ".join(wrong))
    for name, (array, lod) in found.items():
        tensor = scope.var(name).get_tensor()
        tensor.set(array)
        tensor.lod_offsets = lod


def choose(main_program, vars, predicate):
    """The variables meant, by name and in name order."""
    program = getattr(main_program, "program", main_program) or default_main_program()
    if not isinstance(program, Program):
        raise UsageError(f"expected a Program, got {type(program).__name__}")
    if vars is None:
        vars = [var for var in program.list_vars() if predicate is None or predicate(var)]
    block = program.global_block()
    named = [var if isinstance(var, Variable) else block.var(var) for var in vars]
    return {var.name: var for var in sorted(named, key=lambda var: var.name) if var.type not in _UNSAVED}


def _value(scope, name):
    holder = scope.find_var(name)
    if holder is None or holder.tensor.array is None:
        raise UsageError(f"variable {name!r} has no value to save: run the startup program in this scope first")
    return holder.tensor


def _read_each(dirname, chosen):
    missing = [name for name in chosen if not os.path.isfile(os.path.join(dirname, name))]
    if missing:
        raise CheckpointDamaged(f"{dirname}: no file for {len(missing)} of {len(chosen)} variables: "
                                + ", ".join(missing[:20]))
    found = {}
    for name in chosen:
        with open(os.path.join(dirname, name), "rb") as stream:
            found[name] = read_tensor(stream)
            if stream.read(1):
                raise CheckpointDamaged(f"{stream.name}: there is more in the file after the tensor")
    return found


def _read_together(dirname, filename, chosen):
    path = os.path.join(dirname, filename)
    if not os.path.isfile(path):
        raise CheckpointDamaged(f"{path}: no such file")
    with open(path, "rb") as stream:
        tensors = list(read_tensors(stream))
    if len(tensors) != len(chosen):
        raise CheckpointDamaged(f"{path}: holds {len(tensors)} variables, the program asks for {len(chosen)}")
    return dict(zip(chosen, tensors))


def _difference(var, array, may_be_longer):
    """Words on how a saved array differs from the variable it is for; nothing where it fits."""
    shape = (-1,) + tuple(var.shape[1:]) if may_be_longer else var.shape
    shape_fits = len(array.shape) == len(shape) and all(want in (-1, got) for want, got in zip(shape, array.shape))
    if not shape_fits or array.dtype != np.dtype(var._dtype):
        yield (f"{var.name}: program {var._dtype}{list(var.shape)}, file {array.dtype}{list(array.shape)}")
