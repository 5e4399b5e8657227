"""``fluid.debugger``: programs as text and as graphs."""

import os
import sys

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.drawing import graph_lines


def pprint_program_codes(program_desc):
    """Write a program as text to stderr."""
    sys.stderr.write(program_desc.to_string() + "\n")


def pprint_block_codes(block_desc, show_backward=False):
    """Write a block as text to stderr."""
    sys.stderr.write(block_desc.to_string() + "\n")


def draw_block_graphviz(block, highlights=None, path="./temp.dot"):
    """Write a block as a graph of ops and variables for Graphviz; variables named in ``highlights`` are coloured."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write("\n".join(graph_lines(block, set(highlights or ()))))


__getattr__ = _missing_name("paddle.fluid.debugger", globals(), refused=dict.fromkeys(
    ("prepare_fast_nan_inf_debug", "run_fast_nan_inf_debug"),
    "set FLAGS_check_nan_inf=1: a run names the op and the variable"))
