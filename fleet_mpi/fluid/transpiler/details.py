"""``fluid.transpiler.details``: programs as text."""

import sys

from fleet_mpi.errors import missing_name as _missing_name


def program_to_code(prog, fout=None, skip_op_callstack=True):
    """Write a program as text to an open file, or to stderr."""
    (fout or sys.stderr).write(prog.to_string() + "\n")


__getattr__ = _missing_name("paddle.fluid.transpiler.details", globals())
