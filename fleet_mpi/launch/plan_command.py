"""``python -m fleet_mpi plan``: which server would keep what, before a job is started.

Reads names and shapes from the command line or from a saved model; starts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING

from fleet_mpi import update_rules
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensor
from fleet_mpi.checkpoint.models.inference_model import MODEL
from fleet_mpi.command_line import CommandLine
from fleet_mpi.errors import FleetError, UsageError
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.placement import Variable, place
from fleet_mpi.placement.dispatch import METHODS
from fleet_mpi.placement.plan import plan
from fleet_mpi.program.graph.serialize import parse
from fleet_mpi.wire import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet_mpi.placement.placing import Placement

ABOUT = """Prints the shard table: what each server would keep, how evenly, and what one step of a worker moves."""
HINT = """A variable is cut into blocks of whole rows from twice --min-block-size elements on.
example: python -m fleet_mpi plan --servers 3 w:1000x1000 b:1000"""

# What optimizers keep beside parameters, as it is called in a folder of saved variables.
_STATE = re.compile("_(?:" + "|".join(sorted({re.escape(state.name) for rule in update_rules.RULES.values()
                                              for state in rule.states})) + r")_\d+$|^learning_rate_\d+$|^@")


def main(argv: Sequence[str]) -> int:
    """Print the table that the command line asks for; returns the exit code."""
    asked = _parser().parse_args(argv)
    try:
        variables = [_variable(text) for text in asked.variables] + (_saved(asked.model) if asked.model else [])
        if not variables:
            raise UsageError("plan: nothing to place; give variables as NAME:SHAPE, e.g. w:1000x1000, or --model "
                             "FOLDER")
        placement = place(variables, asked.servers, asked.method, asked.slice, asked.min_block_size, asked.seed)
        made = plan(placement, _messages(placement))
        sys.stdout.write(json.dumps(made.record()) + "\n" if asked.json else made.text())
    except FleetError as error:
        sys.stderr.write(f"fleet_mpi: {type(error).__name__}: {error}\n")
        return error.exit_code
    return 0


def show(text: str, servers: int = 0, model: str | None = None) -> int:
    """Write what a dry run tells, and after it the table of a saved ``model``, if one is given; returns the exit
    code."""
    sys.stdout.write(text)
    sys.stdout.flush()
    return main(["--servers", str(servers), "--model", model]) if servers and model else 0


def _parser() -> CommandLine:
    parser = CommandLine(prog="python -m fleet_mpi plan", description=ABOUT, epilog=HINT,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variables", nargs="*", metavar="NAME:SHAPE[:DTYPE]",
                        help="in the order of the optimizer's updates (by name); shape as 1000x20")
    parser.add_argument("--servers", type=int, required=True, help="how many servers")
    parser.add_argument("--method", default="RoundRobin", help=f"one of {', '.join(METHODS)} (RoundRobin)")
    parser.add_argument("--no-slice", dest="slice", action="store_false", help="keep every variable whole")
    parser.add_argument("--min-block-size", type=int, default=8192, help="elements of the smallest block (8192)")
    parser.add_argument("--seed", type=int, default=0, help="the program's random_seed: the order with --no-slice (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--model", metavar="FOLDER", help="a saved inference model, or a folder of saved variables")
    return parser


def _variable(text: str) -> Variable:
    found = re.fullmatch(r"(.+?):(\d+(?:x\d+)*)(?::(\w+))?", text)
    if not found:
        raise UsageError(f"plan: expected a variable as NAME:SHAPE, e.g. w:1000x20, got {text!r}")
    name, shape, dtype = found.groups()
    return Variable(name, tuple(map(int, shape.split("x"))), dtype or "float32")


def _saved(folder: str) -> list[Variable]:
    """The parameters of a saved model, by name."""
    if os.path.isfile(os.path.join(folder, MODEL)):
        found = parse(SavedFiles(folder).read(MODEL), os.path.join(folder, MODEL))[0].all_parameters()
        return sorted(Variable(var.name, tuple(var.shape), str(var._dtype)) for var in found if var.trainable)
    if not os.path.isdir(folder):
        raise UsageError(f"plan: --model {folder!r} is not a folder")
    return sorted(_of_file(folder, name) for name in _files(folder) if not _STATE.search(name))


def _files(folder: str) -> Iterator[str]:
    """Names of the variables that have a file; a name with a slash lies in a folder below."""
    for below, folders, names in os.walk(folder):
        # What saves keep for themselves.
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(below, name), folder).replace(os.sep, "/")


def _of_file(folder: str, name: str) -> Variable:
    with open(os.path.join(folder, name), "rb") as stream:
        array, _ = read_tensor(stream)
    return Variable(name, array.shape, array.dtype.name)


def _messages(placement: Placement) -> list[int]:
    """Per server, in how many messages an image travels: one, or a header and its pieces."""
    layout = FlatLayout(placement.variables)
    images = [ServerImage(layout, placement.of_server(server)) for server in range(placement.servers)]
    return [1 if image.nbytes <= protocol.PIECE else 1 + len(image.pieces) for image in images]
