"""A saved program's variables as a dictionary of arrays: ``load_program_state`` and ``set_program_state``."""

import os

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint.manifest import NAME
from fleet_mpi.checkpoint.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.variables import (
    choose,
    is_parameter,
    is_persistable,
    program_of,
    put_values,
    value_in,
    values_of,
)
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.serialize import parse


def load_program_state(model_path, var_list=None):
    """{name: array} of what ``save``, ``save_params`` or ``save_persistables`` wrote.

    ``model_path`` is the path given to ``save``, a folder with a file per variable, or one file for all; only the last
    needs ``var_list``. Of the others a list chooses.
    """
    folder, name = os.path.split(os.fspath(model_path).rstrip(os.sep))
    chosen = None if var_list is None else sorted(getattr(var, "name", var) for var in var_list)
    if os.path.isdir(folder or ".") and SavedFiles(folder or ".").has(name + ".pdparams"):
        values = read_settled(folder or ".", lambda files: _of_a_model(files, name))
    elif os.path.isdir(model_path):
        values = read_settled(model_path, lambda files: values_of(files, chosen or _names(files)))
    elif not os.path.isfile(model_path):
        raise CheckpointMissing(f"load_program_state: neither {model_path}.pdparams nor a folder or file {model_path}")
    elif chosen is None:
        raise UsageError(f"load_program_state: {model_path} holds several variables without their names; give "
                         f"var_list, the variables that were saved into it")
    else:
        values = read_settled(folder or ".", lambda files: values_of(files, chosen, name, chosen))
    return {one: array for one, array, _ in values if chosen is None or one in chosen}


def set_program_state(program, state_dict):
    """Give a program's variables in the global scope their values from a dictionary; others in it are named once."""
    known = choose(program, None, is_persistable)
    if not isinstance(state_dict, dict):
        raise UsageError(f"set_program_state: expected a dictionary of arrays, got {type(state_dict).__name__}")
    unused = sorted(set(state_dict) - set(known))
    if unused:
        notices.log().warning("set_program_state: the program has no %s; passed over", ", ".join(unused[:20]))
    values = [(name, np.asarray(state_dict[name]), ()) for name in known if name in state_dict]
    put_values(global_scope(), {name: known[name] for name, _, _ in values}, values, "set_program_state")


def parameter_value(parameter, executor):
    """The value of a parameter in the global scope (``fluid.io.get_parameter_value``)."""
    if not is_parameter(parameter):
        raise UsageError(f"get_parameter_value: expected a parameter, got {parameter!r}")
    return value_in(global_scope(), parameter.name).numpy()


def parameter_value_by_name(name, executor, program=None):
    """As ``parameter_value``, by the parameter's name in a program."""
    return parameter_value(program_of(program).global_block().var(name), executor)


def _of_a_model(files, name):
    """The parameters and, where there are any, what else persists; the program beside them knows their names."""
    program, _ = parse(files.read(name + ".pdmodel"), os.path.join(files.folder, name + ".pdmodel"))
    params, others = choose(program, None, is_parameter), choose(program, None, is_persistable)
    yield from values_of(files, params, name + ".pdparams", params)
    others = {one: var for one, var in others.items() if one not in params}
    if others and files.has(name + ".pdopt"):
        yield from values_of(files, others, name + ".pdopt", others)


def _names(files):
    """The variables of a folder: its files, apart from a model and what is hidden."""
    found = files.manifest.files or [one for one in os.listdir(files.folder)
                                     if os.path.isfile(os.path.join(files.folder, one))]
    return sorted(one for one in found if one != NAME and not one.startswith((".", "__model__")))
