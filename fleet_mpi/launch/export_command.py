"""``python -m fleet_mpi export MODEL --to safetensors|onnx|npz``: saved models for other libraries.

Reads files and writes one; starts no MPI.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from fleet_mpi.command_line import CommandLine
from fleet_mpi.errors import FleetError, installing
from fleet_mpi.export import KINDS, export

if TYPE_CHECKING:
    from collections.abc import Sequence

ABOUT = """Writes a saved model, or saved variables, as one file that other libraries read.
safetensors and npz hold the variables by name; onnx the program too, with an open batch size."""
HINT = f"""MODEL is a folder of save_inference_model, save_persistables or save_params, or the path that
paddle.static.save_inference_model or fluid.save was given.
safetensors and onnx need: {installing("export")}
example: python -m fleet_mpi export digits.model --to onnx"""


def main(argv: Sequence[str]) -> int:
    """Export what the command line names; returns the exit code."""
    parser = CommandLine(prog="python -m fleet_mpi export", description=ABOUT, epilog=HINT,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="what was saved")
    parser.add_argument("--to", required=True, choices=list(KINDS), help="the kind of file")
    parser.add_argument("--output", metavar="FILE", help="the file, replaced if it exists (the name of MODEL with the "
                                                         "kind as its ending, in the current folder)")
    asked = parser.parse_args(argv)
    output = asked.output or f"{os.path.basename(os.path.abspath(asked.model))}.{asked.to}"
    try:
        words = export(asked.model, asked.to, output)
    except FleetError as error:
        sys.stderr.write(f"fleet_mpi: {type(error).__name__}: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{output}: {words}\n")
    return 0
