"""A saved program's variables as a dictionary of arrays: ``load_program_state`` and ``set_program_state``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.values.scope import put_values, value_in
from fleet_mpi.checkpoint.variables import choose, is_other, is_parameter, is_persistable, program_of
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.serialize import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from fleet_mpi.checkpoint.formats import Format
    from fleet_mpi.checkpoint.variables import AnyProgram
    from fleet_mpi.program.engine.executor import Executor
    from fleet_mpi.program.graph.variable import Variable


def load_program_state(model_path: str, var_list: Iterable[Variable | str] | None = None) -> dict[str, np.ndarray]:
    """{name: array} of what ``save``, ``save_params`` or ``save_persistables`` wrote.

    ``model_path`` is the path given to ``save``, a folder with a file per variable, or one file for all; only the last
    needs ``var_list``. Of the others a list chooses.
    """
    folder, name = os.path.split(os.fspath(model_path).rstrip(os.sep))
    listed: Any = var_list   # getattr's type is a union, whatever it is asked for
    chosen = None if listed is None else sorted(getattr(var, "name", var) for var in listed)
    if os.path.isdir(folder or ".") and SavedFiles(folder or ".").has(name + ".pdparams"):
        values = read_settled(folder or ".", lambda files: _of_a_model(files, name))
    elif os.path.isdir(model_path):
        values = read_settled(model_path, lambda files: _of_a_format(files, formats.of(None), chosen))
    elif not os.path.isfile(model_path):
        raise CheckpointMissing(f"load_program_state: neither {model_path}.pdparams nor a folder or file {model_path}")
    elif chosen is None and formats.of(name).names(SavedFiles(folder or ".")) is None:
        raise UsageError(f"load_program_state: {model_path} holds several variables without their names; give "
                         f"var_list, the variables that were saved into it")
    else:
        values = read_settled(folder or ".", lambda files: _of_a_format(files, formats.of(name), chosen))
    return {one: array for one, array, _ in values if chosen is None or one in chosen}


def set_program_state(program: AnyProgram, state_dict: dict[str, np.ndarray]) -> None:
    """Give a program's variables in the global scope their values from a dictionary; others in it are named once."""
    known = choose(program, None, is_persistable)
    if not isinstance(state_dict, dict):
        raise UsageError(f"set_program_state: expected a dictionary of arrays, got {type(state_dict).__name__}")
    unused = sorted(set(state_dict) - set(known))
    if unused:
        notices.log().warning("set_program_state: the program has no %s; passed over", ", ".join(unused[:20]))
    values = [Value(name, np.asarray(state_dict[name])) for name in known if name in state_dict]
    put_values(global_scope(), {name: known[name] for name, _, _ in values}, values, "set_program_state")


def parameter_value(parameter: Variable, executor: Executor | None) -> np.ndarray:
    """The value of a parameter in the global scope (``fluid.io.get_parameter_value``)."""
    if not is_parameter(parameter):
        raise UsageError(f"get_parameter_value: expected a parameter, got {parameter!r}")
    return value_in(global_scope(), parameter.name).numpy()


def parameter_value_by_name(name: str, executor: Executor | None, program: AnyProgram = None) -> np.ndarray:
    """As ``parameter_value``, by the parameter's name in a program."""
    return parameter_value(program_of(program).global_block().var(name), executor)


def _of_a_model(files: SavedFiles, name: str) -> Iterator[Value]:
    """The parameters and, where there are any, what else persists; the program beside them knows their names."""
    program, _ = parse(files.read(name + ".pdmodel"), os.path.join(files.folder, name + ".pdmodel"))
    params, others = choose(program, None, is_parameter), choose(program, None, is_other)
    yield from formats.of(name + ".pdparams").read(files, params, params)
    if others and files.has(name + ".pdopt"):
        yield from formats.of(name + ".pdopt").read(files, others, others)


def _of_a_format(files: SavedFiles, format: Format, chosen: list[str] | None) -> Iterator[Value]:
    """The variables chosen, or all that the files name."""
    names = chosen or format.names(files)
    assert names is not None   # who cannot say them was given some
    return format.read(files, names, names)
