"""The op ``load`` and its layer: a program that reads a variable from a file when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.formats.tensor_stream import read_tensor
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.registry import Meta, op

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from fleet_mpi.checkpoint.formats.base import Lod
    from fleet_mpi.program.engine.binding import BoundCall
    from fleet_mpi.program.graph.registry import Call
    from fleet_mpi.program.graph.variable import Variable


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Let ``out`` be the tensor of a file that ``save_vars`` wrote, read anew at every run."""
    helper = LayerHelper("load")
    helper.append_op("load", {}, {"Out": [helper.require(out, "out")]},
                     {"file_path": str(file_path),
                      **({} if load_as_fp16 is None else {"load_as_fp16": bool(load_as_fp16)})})


@op("load", attrs={"file_path": "", "load_as_fp16": False}, dynamic=True, effect=True)
class Load:
    """The tensor of a file, with its LoD."""

    def infer(k: Call) -> None:
        """As the variable was declared: what the file holds is known when it runs."""

    def run(k: BoundCall) -> Callable[[], None]:
        """Read it."""
        return lambda: put(k, *read(k, k.attr("file_path")))


def read(k: BoundCall, path: str) -> tuple[np.ndarray, Lod]:
    """(array, lod) of a file that has one tensor."""
    try:
        with open(path, "rb") as stream:
            found = read_tensor(stream)
            if stream.read(1):
                raise CheckpointDamaged(f"{k.op}: {path}: there is more in the file after the tensor; a file of "
                                        f"several variables is read by fluid.io.load_vars(..., filename=...)")
    except OSError as error:
        k.fail(f"cannot read {path!r} ({error.strerror}); expected a file that fluid.io.save_vars wrote")
    return found


def put(k: BoundCall, array: np.ndarray, lod: Lod) -> None:
    """Let the output be an array of the host."""
    array = array.astype("float16") if k.attr("load_as_fp16") else array
    k.put("Out", k.xp.asarray(array), meta=Meta(array.shape, array.dtype, lod))
