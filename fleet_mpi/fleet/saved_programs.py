"""Saved programs looked at from outside of training: read, compared, tried with data, drawn.

Programs have one format here, which people can read: the ``is_text`` of the original's calls changes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.checkpoint.loading import load_vars
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, scope_guard
from fleet_mpi.program.graph.drawing import graph_lines
from fleet_mpi.program.graph.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fleet_mpi.program.graph.block import Block


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """The program in a file: a ``__model__``, or what ``save_program`` wrote."""
    if not os.path.isfile(model_filename):
        raise CheckpointMissing(f"load_program: {model_filename}: no such file")
    with open(model_filename, "rb") as stream:
        return Program.parse_from_string(stream.read())


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Write a program into a file."""
    with replacing(model_filename) as stream:
        stream.write(program.serialize_to_string())


def program_type_trans(prog_dir: str, prog_fn: str, is_text: bool) -> str:
    """Write a program under the name of the other form (``.bin`` or ``.pbtxt``); returns that name."""
    name = prog_fn + (".bin" if is_text else ".pbtxt")
    save_program(load_program(os.path.join(prog_dir, prog_fn), is_text), os.path.join(prog_dir, name))
    return name


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """Whether every variable that persists in a pruned program is in the other one, with its shape and type."""
    trained = choose(train_prog, None, is_persistable)
    wrong = [f"{name}: {_kind(trained.get(name))} != {_kind(var)}" for name, var in choose(
        pruned_prog, None, is_persistable).items() if _kind(trained.get(name)) != _kind(var)]
    if wrong:
        notices.log().warning("the pruned program does not fit the one that was trained: %s", "; ".join(wrong[:20]))
    return not wrong


def check_two_programs(config: Any) -> bool:
    """``check_pruned_program_vars`` of two files (``train_prog_path``, ``pruned_prog_path``), drawn if ``draw`` is
    set."""
    programs = {word: load_program(getattr(config, f"{word}_prog_path")) for word in ("train", "pruned")}
    if getattr(config, "draw", False):
        for word, program in programs.items():
            draw_from_program(program, os.path.dirname(getattr(config, f"{word}_prog_path")),
                              f"{getattr(config, 'draw_out_name', 'program')}_{word}")
    return check_pruned_program_vars(programs["train"], programs["pruned"])


def check_vars_and_dump(config: Any) -> Any:
    """``check_saved_vars_try_dump`` with the words of a config object."""
    return check_saved_vars_try_dump(
        config.dump_model_dir, config.dump_program_filename, getattr(config, "is_text_dump_program", False),
        config.feed_config, config.fetch_config, getattr(config, "batch_size", 1), config.save_params_filename)


def check_saved_vars_try_dump(dump_dir: str, dump_prog_fn: str, is_text_dump_program: bool, feed_config: Any,
                              fetch_config: Any, batch_size: int = 1, save_filename: str | None = None) -> Any:
    """Load a saved model into a scope of its own, run it once, and return [values of what is fetched].

    Data come from the files of ``feed_config`` (text, numbers), or are drawn where it has none.
    """
    program = load_program(os.path.join(dump_dir, dump_prog_fn))
    with scope_guard(Scope()):
        load_vars(None, dump_dir, program, predicate=is_persistable, filename=save_filename)
        feed = {name: value for name, value in _samples(feed_config, batch_size)}
        results = Executor().run(program, feed=feed, fetch_list=list(fetch_config.fetch_vars_names))
    for name, value in zip(fetch_config.fetch_vars_names, results):
        notices.log().info("%s: %s", name, np.array2string(np.asarray(value), threshold=20))
    return results


def _samples(config: Any, batch_size: int) -> Iterator[tuple[str, np.ndarray]]:
    files = getattr(config, "feeded_vars_filelist", None) or [None] * len(config.feeded_vars_names)
    rng = np.random.default_rng(0)
    for name, dims, kind, path in zip(config.feeded_vars_names, config.feeded_vars_dims, config.feeded_vars_types,
                                      files):
        shape = (batch_size, *(dims if isinstance(dims, (list, tuple)) else [dims]))
        drawn = rng.random(shape) if np.dtype(kind).kind == "f" else rng.integers(0, 2, shape)
        yield name, (drawn if path is None else np.loadtxt(path).reshape(shape)).astype(kind)


def parse_program_proto(prog_path: str, is_text: bool, output_dir: str) -> None:
    """Write a program's variables, those that persist, and its ops as lines of three files in a folder."""
    program = load_program(prog_path, is_text)
    names = {"vars_all.log": program.list_vars(), "vars_persistable.log": filter(is_persistable, program.list_vars()),
             "ops.log": (op for block in program.blocks for op in block.ops)}
    os.makedirs(output_dir, exist_ok=True)
    for name, things in names.items():
        with replacing(os.path.join(output_dir, name)) as stream:
            stream.write("".join(f"{one}\n" for one in things).encode())


def draw_from_program_file(model_filename: str, is_text: bool, output_dir: str, output_filename: str) -> str:
    """``draw_from_program`` of a file."""
    return draw_from_program(load_program(model_filename, is_text), output_dir, output_filename)


def draw_from_program(program: Program, output_dir: str, output_name: str) -> str:
    """Write block 0 as a graph of ops and variables for Graphviz; returns the path (``dot -Tpdf`` makes a picture)."""
    path = os.path.join(output_dir, output_name + ".dot")
    os.makedirs(output_dir or ".", exist_ok=True)
    with replacing(path) as stream:
        stream.write("\n".join(graph_lines(program.global_block())).encode())
    return path


def graphviz(block: Block, output_dir: str = "", filename: str = "debug") -> str:
    """``draw_from_program`` of a block's program."""
    if block.idx:
        raise UsageError(f"graphviz: expected block 0 of a program, got block {block.idx}")
    return draw_from_program(block.program, output_dir, filename)


def _kind(var: Any) -> tuple[tuple[int, ...], str] | None:
    return None if var is None else (tuple(var.shape), str(var.dtype))


parse_program = parse_program_proto
