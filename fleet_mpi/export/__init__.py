"""Saved models and variables for other libraries: safetensors, npz, ONNX.

    saved_model     what a folder holds: a program and its variables, or variables alone
    array_files     variables as safetensors or npz
    onnx_model      an inference program as an ONNX model
    onnx_graph      the ONNX graph while it is made, and what a converter sees of one op
    onnx_ops/       one converter per op

``launch/export_command.py`` is the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.errors import EnvironmentProblem, UsageError, installing, nearest
from fleet_mpi.export import array_files
from fleet_mpi.export.saved_model import SavedModel, read_saved

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

__all__ = ["KINDS", "export"]


def _onnx(saved: SavedModel, stream: BinaryIO) -> str:
    try:
        # Imported here: it needs a package that the others do not.
        from fleet_mpi.export.onnx_model import write_onnx
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise EnvironmentProblem("ONNX models need the package onnx, which is not installed: "
                                 f"{installing('export')}, or pip install onnx") from None
    return write_onnx(saved, stream)


# What ``to`` may be: functions that write a SavedModel to a stream and return words on what they wrote.
KINDS = {"safetensors": array_files.write_safetensors, "onnx": _onnx, "npz": array_files.write_npz}


def export(model: str | os.PathLike[str], to: str, output: str | os.PathLike[str]) -> str:
    """Write a saved model to the file ``output``, completely or not at all; returns words on what it holds.

    Args:
        model: a folder of ``save_inference_model``, ``save_persistables`` or ``save_params``, or the path that
            ``paddle.static.save_inference_model`` or ``fluid.save`` was given.
        to: one of ``KINDS``.
    """
    if to not in KINDS:
        raise UsageError(f"export: unknown kind {to!r}; {nearest(to, KINDS)}")
    saved = read_saved(str(model))
    with replacing(str(output)) as stream:
        words = KINDS[to](saved, stream)
        size_bytes = stream.tell()
    return f"{words}, {size_bytes:,} bytes"
