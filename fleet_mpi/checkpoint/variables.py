"""Saving and loading a program's variables: one file per variable, or one file for all.

Files have the original's tensor format (tensor_file.py) and are replaced together (transaction.py). Loading first reads
and checks everything, then changes the scope: a checkpoint that does not fit changes nothing.
"""

import os

import numpy as np

from fleet_mpi.checkpoint import blocks, file_names
from fleet_mpi.checkpoint.resuming import note_runs, resuming_runs
from fleet_mpi.checkpoint.saved_files import read_settled
from fleet_mpi.checkpoint.tensor_file import read_tensor, read_tensors, write_tensor
from fleet_mpi.checkpoint.transaction import saving_into
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.program.graph.registry import GRAD
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.graph.variable import Parameter, Variable
from fleet_mpi.program.ops.sparse_table import INDEX, KEYS, growing_variables
from fleet_mpi.ranks.ending import amid

# Kinds of variable that hold no saved values.
_UNSAVED = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW)


def is_persistable(var):
    """Whether a variable keeps its value between runs, and so belongs into a checkpoint.

    A gradient that a worker sends from where it lies is persistable only for that.
    """
    return var.persistable and var.type not in _UNSAVED and not var.name.endswith(GRAD)


def is_parameter(var):
    """Whether a variable is a parameter, or says which ids the rows of one belong to."""
    return isinstance(var, Parameter) or var.persistable and var.name.endswith((KEYS, INDEX))


def save_persistables(executor, dirname, main_program=None, filename=None, runs=None, author=None):
    """Save every persistable variable: parameters, optimizer state, counters.

    ``runs`` is the program whose runs are counted, where it is not the one that is saved; ``author`` is the worker of a
    job that saves.
    """
    with saving_into(dirname, author) as save:
        add_vars(save, choose(main_program, None, is_persistable), filename)
        note_runs(save, runs or program_of(main_program))


def save_params(executor, dirname, main_program=None, filename=None):
    """Save the parameters."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_persistables(executor, dirname, main_program=None, filename=None, runs=None):
    """Load what ``save_persistables`` wrote."""
    names = [filename] if filename is not None else list(choose(main_program, None, is_persistable))
    with resuming_runs(runs or program_of(main_program), dirname, names):
        load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def load_params(executor, dirname, main_program=None, filename=None):
    """Load what ``save_params`` wrote."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


@amid("a save")
def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Save some variables of a program: those listed, or those for which ``predicate(var)`` holds."""
    with saving_into(dirname) as save:
        add_vars(save, choose(main_program, vars, predicate), filename)


def add_vars(save, chosen, filename=None):
    """Let a save have the values that variables have in the global scope."""
    tensors = [(name, value_in(global_scope(), name)) for name in chosen]
    for name, tensor in tensors:
        # Not statistics of batch normalisation, which are each worker's own.
        if getattr(chosen[name], "trainable", False):
            save.has(tensor.array)
    write_values(save, ((name, tensor.array, tensor.lod_offsets) for name, tensor in tensors), filename)


def write_values(save, values, filename=None):
    """Write (name, array, lod) tuples, in name order: a file each, or all into one."""
    if filename is not None:
        with save.open(filename) as stream:
            for _, array, lod in values:
                write_tensor(stream, array, lod)
        return
    for name, array, lod in values:
        with save.open(name) as stream:
            write_tensor(stream, array, lod)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Load some variables of a program; names every variable that is missing or does not fit."""
    chosen, scope = choose(main_program, vars, predicate), global_scope()
    put_values(scope, chosen, read_values(dirname, chosen, filename, chosen), dirname)


def put_values(scope, chosen, values, dirname):
    """Let a scope have (name, array, lod) tuples that were read from a folder, if all fit the variables chosen."""
    found = {name: (array, lod) for name, array, lod in values}
    growing = set().union(*(growing_variables(program) for program in {var.block.program for var in chosen.values()}))
    refuse_differences(dirname,
                       {name: list(differences(name, _shape(chosen[name], name in growing), chosen[name]._dtype,
                                               array)) for name, (array, _) in found.items()})
    for name, (array, lod) in found.items():
        tensor = scope.var(name).get_tensor()
        tensor.set(array)
        tensor.lod_offsets = lod


def choose(main_program, vars, predicate):
    """The variables meant, by name and in name order."""
    program = program_of(main_program)
    if vars is None:
        vars = [var for var in program.list_vars() if predicate is None or predicate(var)]
    block = program.global_block()
    named = [var if isinstance(var, Variable) else block.var(var) for var in vars]
    return {var.name: var for var in sorted(named, key=lambda var: var.name) if var.type not in _UNSAVED}


def program_of(main_program):
    """The Program that a script means: the default one, or that of a CompiledProgram."""
    program = getattr(main_program, "program", main_program) or default_main_program()
    if not isinstance(program, Program):
        raise UsageError(f"expected a Program, got {type(program).__name__}")
    return program


def value_in(scope, name):
    """The tensor of a variable that is to be saved; UsageError where it has no value."""
    holder = scope.find_var(name)
    if holder is None or holder.tensor.array is None:
        raise UsageError(f"variable {name!r} has no value to save: run the startup program in this scope first")
    return holder.tensor


def read_values(dirname, names, filename=None, saved=None):
    """Yield (name, array, lod) of some variables of a folder, one after the other, all from one state of it.

    Where they are all in one file, ``saved`` are the names of all that it holds. If the folder is saved to meanwhile,
    names come again: the last values count.
    """
    yield from read_settled(dirname, lambda files: values_of(files, names, filename, saved))


def values_of(files, names, filename=None, saved=None):
    """``read_values`` from one state of a folder, a ``SavedFiles``."""
    if filename is None:
        return _read_apart(files, list(names))
    return _read_together(files, filename, set(names), sorted(saved))


def _read_apart(files, names):
    found = {name: blocks.files_of(files, name) for name in names}
    missing = [name for name, held in found.items() if not all(map(files.has, held))]
    if missing:
        raise CheckpointDamaged(f"{files.folder}: no file for {len(missing)} of {len(names)} variables: "
                                + ", ".join(missing[:20]))
    with files.refusing_changed([one for held in found.values() for one in held]):
        for name, held in found.items():
            yield name, *blocks.joined(files, name, [_read(files, one) for one in held])


def _read(files, name):
    """(array, lod) of a file that has one tensor."""
    with files.open(name) as stream:
        found = read_tensor(stream)
        if stream.read(1):
            raise CheckpointDamaged(f"{stream.name}: there is more in the file after the tensor")
        stream.require_whole()
    return found


def _read_together(files, filename, wanted, saved):
    file_names.path_in(files.folder, filename)  # this name is the script's own
    count = 0
    with files.refusing_changed([filename]), files.open(filename) as stream:
        for count, (array, lod) in enumerate(read_tensors(stream), 1):
            if count <= len(saved) and saved[count - 1] in wanted:
                yield saved[count - 1], array, lod
        stream.require_whole()
    if count != len(saved):
        raise CheckpointDamaged(f"{os.path.join(files.folder, filename)}: holds {count} variables, the program asks "
                                f"for {len(saved)}")


def differences(name, shape, dtype, array):
    """Words on how a saved array differs from what it is for; nothing where it fits. -1 fits every size."""
    shape_fits = len(array.shape) == len(shape) and all(want in (-1, got) for want, got in zip(shape, array.shape))
    if not shape_fits or array.dtype != np.dtype(dtype):
        yield f"{name}: program {dtype}{list(shape)}, file {array.dtype}{list(array.shape)}"


def refuse_differences(dirname, found):
    """Raise CheckpointDamaged with the words of ``differences``, by name, if there are any."""
    wrong = [text for texts in found.values() for text in texts]
    if wrong:
        raise CheckpointDamaged(f"{dirname}: the saved variables do not fit this program: " + "; ".join(wrong[:20]))


def _shape(var, may_be_longer):
    return (-1,) + tuple(var.shape[1:]) if may_be_longer else tuple(var.shape)
