"""Models for inference: ``__model__`` (program/graph/serialize.py has its format) and the parameter files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet_mpi.arrays import DistantTable
from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders.saved_files import read_settled
from fleet_mpi.checkpoint.folders.transaction import Save
from fleet_mpi.checkpoint.values.scope import put_values
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program, default_main_program, prune
from fleet_mpi.program.graph.serialize import parse, program_to_bytes
from fleet_mpi.program.graph.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
    from fleet_mpi.checkpoint.formats import Value
    from fleet_mpi.checkpoint.variables import AnyProgram
    from fleet_mpi.program.engine.executor import Executor

MODEL = "__model__"


def add_model(save: Save, content: bytes, model_filename: str | None = None) -> None:
    """Let a save have the file of a model."""
    with save.open(base_name(model_filename) or MODEL) as stream:
        stream.write(content)


def base_name(filename: str | None) -> str | None:
    """A file of a model lies in its folder: as in the original, only the last part of its name counts."""
    return filename and os.path.basename(filename)


def model_for(feeded_var_names: str | Sequence[str], target_vars: Variable | Sequence[Variable | str],
              main_program: AnyProgram = None) -> tuple[Program, bytes, list[str]]:
    """(the pruned program, the content of its file, the targets' names) of a model for inference."""
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars)
    program: Any = getattr(main_program, "program", main_program) or default_main_program()
    names = [one if isinstance(one, str) else one.name for one in targets]
    pruned = prune(program.clone(for_test=True), names, feeds)
    _require_fed(pruned, feeds, names)
    return pruned, program_to_bytes(pruned, {"feeds": feeds, "fetches": names}), names


def load_inference_model(dirname: str, executor: Executor | None, model_filename: str | None = None,
                         params_filename: str | None = None,
                         pserver_endpoints: Sequence[str] | None = None) -> list[Any]:
    """[program, names to feed, variables to fetch] of a saved model; its parameters go into the global scope."""
    filename = base_name(params_filename)

    def read(files: SavedFiles) -> Iterator[tuple[Program, dict[str, Any], dict[str, Variable], list[Value]]]:
        program, extra = read_model(files, base_name(model_filename) or MODEL)
        chosen = choose(program, None, is_persistable)
        yield program, extra, chosen, list(formats.of(filename).read(files, chosen, chosen))
    # If the model is saved anew meanwhile, the last one counts.
    program, extra, chosen, values = list(read_settled(dirname, read))[-1]
    for name in chosen:
        # A table that the servers of this worker keep: programs of this scope see the model's from now on.
        holder = global_scope().find_var(name)
        if holder is not None and isinstance(holder.value, DistantTable):
            holder.value = None
    put_values(global_scope(), chosen, values, dirname)
    block = program.global_block()
    return [program, list(extra["feeds"]), [block.var(name) for name in extra["fetches"]]]


def read_model(files: SavedFiles, name: str) -> tuple[Program, dict[str, Any]]:
    """(program, {"feeds": names, "fetches": names}) of a model's file."""
    if not files.has(name):
        raise CheckpointMissing(f"{os.path.join(files.folder, name)}: no such file; is {files.folder!r} what "
                                f"save_inference_model wrote?")
    path = os.path.join(files.folder, name)
    program, extra = parse(files.read(name), path)
    for key in ("feeds", "fetches"):
        wrong = [one for one in _list(extra.get(key)) if one not in program.global_block().vars]
        if wrong or not isinstance(extra.get(key), list):
            raise CheckpointDamaged(f"{path}: it was not written by save_inference_model: expected the variables to "
                                    f"feed and to fetch, got {key} {extra.get(key)!r:.80}")
    return program, extra


def _list(given: object) -> list[str]:
    return [one if isinstance(one, str) else "" for one in given] if isinstance(given, list) else []


def _require_fed(program: Program, feeds: Iterable[str], targets: list[str]) -> None:
    """Raise where the targets need data that ``feeds`` does not name."""
    read = {name for op in program.global_block().ops for name in op.input_arg_names}
    made = {name for op in program.global_block().ops for name in op.output_arg_names}
    missing = sorted(name for name in read - made - set(feeds)
                     if not program.global_block()._var_recursive(name).persistable)
    if missing:
        raise UsageError(f"save_inference_model: {targets} depend on {missing}, which are neither in "
                         f"feeded_var_names {list(feeds)} nor saved")
