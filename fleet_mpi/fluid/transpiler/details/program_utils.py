"""``fluid.transpiler.details.program_utils``: programs as text, and ops by what they read and write."""

import sys

from fleet_mpi.errors import missing_name as _missing_name


def program_to_code(prog, fout=None, skip_op_callstack=True):
    """Write a program as text to an open file, or to stderr."""
    (fout or sys.stderr).write(prog.to_string() + "\n")


def delete_ops(block, ops):
    """Take these ops out of a block."""
    block.ops[:] = [op for op in block.ops if op not in ops]
    block.program.touch()


def find_op_by_input_arg(block, arg_name):
    """The position of the first op of a block that reads a variable, -1 where none does."""
    return next((number for number, op in enumerate(block.ops) if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block, arg_name, reverse=False):
    """The position of the first (or the last) op of a block that writes a variable, -1 where none does."""
    found = [number for number, op in enumerate(block.ops) if arg_name in op.output_arg_names]
    return found[-1 if reverse else 0] if found else -1


__getattr__ = _missing_name("paddle.fluid.transpiler.details.program_utils", globals())
