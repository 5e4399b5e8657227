"""What a saved folder holds: a program and its variables, or variables alone.

Nobody has to name the files: the program is the file that begins as programs do, and the variables lie beside it, in a
file each or all in one. Starts nothing and changes no scope.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensors
from fleet_mpi.checkpoint.models.inference_model import MODEL, read_model
from fleet_mpi.checkpoint.models.program_state import load_program_state
from fleet_mpi.checkpoint.values.scope import refuse_misfits
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.program.graph.serialize import MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet_mpi.program.graph.program import Program

# How the files of ``fluid.save`` and of ``paddle.static.save_inference_model`` end.
PROGRAM, PARAMETERS = ".pdmodel", ".pdparams"


class SavedModel(NamedTuple):
    """A program for inference (None: variables alone), what it is fed and gives, and the variables in name order."""

    path: str
    values: list[Value]
    program: Program | None = None
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()


def read_saved(path: str) -> SavedModel:
    """Read a folder, or the files that begin with a path; checks all that a load checks."""
    folder, name = path, None
    if not os.path.isdir(path) and os.path.isfile(path + PROGRAM):
        folder, name = os.path.dirname(path) or ".", os.path.basename(path) + PROGRAM
    # If the folder is saved to meanwhile, the last read counts.
    return list(read_settled(folder, lambda files: _read(path, files, name)))[-1]


def _read(path: str, files: SavedFiles, name: str | None) -> Iterator[SavedModel]:
    name = name or _program_in(files)
    if name is None:
        yield SavedModel(path, _variables_alone(files))
    elif files.has(name.removesuffix(PROGRAM) + PARAMETERS):
        state = load_program_state(os.path.join(files.folder, name.removesuffix(PROGRAM)))
        yield SavedModel(path, [Value(one, state[one]) for one in sorted(state)])
    else:
        program, extra = read_model(files, name)
        chosen = choose(program, None, is_persistable)
        values = list(formats.of(_file_of_all(files, name, list(chosen))).read(files, chosen, chosen))
        refuse_misfits(chosen, values, files.folder)
        yield SavedModel(path, values, program, tuple(extra["feeds"]), tuple(extra["fetches"]))


def _program_in(files: SavedFiles) -> str | None:
    """The file of the program, if there is one."""
    if files.has(MODEL):
        return MODEL
    found = [name for name in _listed(files) if _begins_as_a_program(files, name)]
    if len(found) > 1:
        paths = ", ".join(os.path.join(files.folder, name.removesuffix(PROGRAM)) for name in found[:10])
        raise UsageError(f"export: {files.folder} holds {len(found)} programs; give the path of one: {paths}")
    return found[0] if found else None


def _listed(files: SavedFiles) -> list[str]:
    """The files that were saved: what else lies in the folder is not theirs, where saves say what they wrote."""
    found = list(files.manifest.files) or [name for name in os.listdir(files.folder)
                                           if os.path.isfile(os.path.join(files.folder, name))]
    return sorted(name for name in found if not name.startswith("."))


def _begins_as_a_program(files: SavedFiles, name: str) -> bool:
    if not files.has(name):
        return False   # whoever reads the variables says so
    with files.open(name) as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _file_of_all(files: SavedFiles, program: str, names: list[str]) -> str | None:
    """The one file that holds all variables of a program; None where each has its own, or one is missing."""
    if not names or any(files.has(file) for file in formats.of(None).files(names, files)):
        return None
    # Of several models in one folder, those of the program's name.
    others = [name for name in _listed(files) if not _begins_as_a_program(files, name)]
    named = [name for name in others if os.path.splitext(name)[0] == os.path.splitext(program)[0]]
    found = named if len(named) == 1 else others
    if len(found) > 1:
        raise UsageError(f"export: {files.folder}: which file holds the variables of {program}? Expected one besides "
                         f"it, found {', '.join(found[:10])}")
    return found[0] if found else None


def _variables_alone(files: SavedFiles) -> list[Value]:
    """All variables of a folder without a program."""
    listed = _listed(files)
    if not listed:
        raise CheckpointMissing(f"{files.folder}: an empty folder; nothing was saved there")
    format = formats.of(listed[0] if len(listed) == 1 else None)
    names = format.names(files)
    if names is not None:
        return list(format.read(files, names, names))
    # One file: the only variable's own, or all of them without their names.
    with files.refusing_changed(listed), files.open(listed[0]) as stream:
        found = list(read_tensors(stream))
        stream.require_whole()
    if len(found) != 1:
        raise UsageError(f"export: {os.path.join(files.folder, listed[0])} holds {len(found)} variables without their "
                         f"names; export the model that save_inference_model wrote, or save a file per variable "
                         f"(without filename=)")
    return [Value(listed[0], *found[0])]
