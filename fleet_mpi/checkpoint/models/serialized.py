"""A model for inference as bytes: what ``paddle.static.serialize_program`` and its relatives give and take.

The bytes are those of the files that ``save_inference_model`` writes, so that either may be read as the other.
"""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint.folders import storage
from fleet_mpi.checkpoint.folders.transaction import saving_into
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensors
from fleet_mpi.checkpoint.models.inference_model import model_for
from fleet_mpi.checkpoint.saving import author_here
from fleet_mpi.checkpoint.values import of_program
from fleet_mpi.checkpoint.values.scope import put_values
from fleet_mpi.checkpoint.variables import choose, is_persistable, program_of
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing, UsageError
from fleet_mpi.program.build.feed_fetch import append_fetch_ops, prepend_feed_ops
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program
from fleet_mpi.program.graph.serialize import program_from_bytes
from fleet_mpi.program.graph.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet_mpi.arrays import Array
    from fleet_mpi.checkpoint.variables import AnyProgram
    from fleet_mpi.program.engine.executor import Executor

    Variables = Variable | Sequence[Variable]


def normalize_program(program: Program, feed_vars: Variables, fetch_vars: Variables) -> Program:
    """The part of a program that leads from what is fed to what is fetched, with the ops that say so."""
    if not isinstance(program, Program):
        raise UsageError(f"normalize_program: expected a Program, got {type(program).__name__}")
    feeds, fetches = _names("feed_vars", feed_vars), _names("fetch_vars", fetch_vars)
    pruned = _model(feeds, fetches, program)[0]
    prepend_feed_ops(pruned, feeds)
    append_fetch_ops(pruned, fetches)
    return pruned


def serialize_program(feed_vars: Variables, fetch_vars: Variables, program: AnyProgram = None, **kwargs: Any) -> bytes:
    """The program for inference as bytes."""
    return _model(_names("feed_vars", feed_vars), _names("fetch_vars", fetch_vars), program)[1]


def deserialize_program(data: bytes) -> Program:
    """The program of such bytes."""
    return program_from_bytes(_bytes("deserialize_program", data))


def serialize_persistables(feed_vars: Variables, fetch_vars: Variables, executor: Executor | None,
                           program: AnyProgram = None, **kwargs: Any) -> bytes | None:
    """The values of what persists of the program for inference, as bytes; None where there is nothing."""
    pruned = _model(_names("feed_vars", feed_vars), _names("fetch_vars", fetch_vars), program)[0]
    chosen = choose(pruned, None, is_persistable)
    if not chosen:
        notices.log().warning("serialize_persistables: this model has no variables to save")
        return None
    memory: Any = _Memory()   # as much of a Save as one file needs
    values = of_program(program, "serialize_persistables")
    chosen = values.choose(list(chosen))
    with values.at_one_moment(chosen):
        values.add(memory, chosen, "all")
    return memory.content.getvalue()


def deserialize_persistables(program: AnyProgram, data: bytes, executor: Executor | None) -> None:
    """Give a program's variables in the global scope the values of such bytes."""
    chosen = choose(program, None, is_persistable)
    found = list(read_tensors(io.BytesIO(_bytes("deserialize_persistables", data)))) if chosen else []
    if len(found) != len(chosen):
        raise CheckpointDamaged(f"deserialize_persistables: the bytes hold {len(found)} variables, the program has "
                                f"{len(chosen)}; are they of the same model?")
    values = [Value(name, *one) for name, one in zip(chosen, found)]
    put_values(global_scope(), chosen, values, "deserialize_persistables")


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes to a file, which is there as a whole or as it was before."""
    folder, name = os.path.split(path)
    content = _bytes("save_to_file", content)
    with saving_into(folder or ".", author_here()) as save, save.open(name) as stream:
        save.has(np.frombuffer(content, np.uint8))
        stream.write(content)


def load_from_file(path: str) -> bytes:
    """The bytes of a file."""
    if not os.path.isfile(path):
        raise CheckpointMissing(f"load_from_file: {path}: no such file")
    with storage.refusals("read", path), open(path, "rb") as stream:
        return stream.read()


class _Memory:
    """Takes one file of a save and keeps it as bytes."""

    def __init__(self) -> None:
        self.content = io.BytesIO()

    @contextmanager
    def open(self, name: str) -> Iterator[io.BytesIO]:
        yield self.content

    def has(self, array: Array) -> None:
        """Nothing to note: the bytes are the caller's own."""


def _model(feeds: list[str], fetches: list[str], program: AnyProgram) -> tuple[Program, bytes, list[str]]:
    """(pruned program, bytes, names) of a program as the script wrote it, before it was spread over servers."""
    program = program_of(program)
    return model_for(feeds, fetches, program._distribution.origin if program._distribution is not None else program)


def _names(argument: str, given: Variables) -> list[str]:
    listed: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    wrong = [type(one).__name__ for one in listed if not isinstance(one, Variable)]
    if wrong or not listed:
        raise UsageError(f"{argument}: expected a variable or a list of variables, got {wrong or 'nothing'}")
    return [one.name for one in listed]


def _bytes(who: str, given: bytes) -> bytes:
    if not isinstance(given, bytes):
        raise UsageError(f"{who}: expected bytes, got {type(given).__name__}")
    return given
