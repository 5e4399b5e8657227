"""The parameters and operations of a program's layers, as the table that ``contrib.model_stat.summary`` prints.

Counted as the original counts, for one sample: a multiplication and an addition are two operations in convolutions and
one in a layer of ``fc``, whose bias is one parameter. Other ops than these few are left out.
"""

from math import prod
from typing import NamedTuple

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import Program

_COLUMNS = ("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")


class Count(NamedTuple):
    """Of one op: shapes without the batch, parameters, operations."""

    type: str
    given: tuple
    made: tuple
    parameters: int
    operations: int


def summary(main_prog):
    """Print a line for each convolution, pooling, ``fc``, activation and batch norm, and the sums."""
    if not isinstance(main_prog, Program):
        raise UsageError(f"summary: expected a Program, got {type(main_prog).__name__}")
    counts = [_COUNTERS[op.type](op) for block in main_prog.blocks for op in block.ops if _is_counted(op)]
    print(_table([_COLUMNS, *((str(number), one.type, str(one.given), str(one.made), str(one.parameters),
                               str(one.operations)) for number, one in enumerate(counts))]))
    parameters, operations = (sum(getattr(one, what) for one in counts) for what in ("parameters", "operations"))
    print(f"Total PARAMs: {parameters}({parameters / 1e6:.4f}M)")
    print(f"Total FLOPs: {operations}({operations / 1e9:.2f}G)")


def _is_counted(op):
    return op.type in _COUNTERS and (op.type != "mul" or "fc" in op.output("Out")[0])


def _shape(op, name):
    return tuple(op.block._var_recursive(name).shape)


def _convolution(op):
    filters, made = _shape(op, op.input("Filter")[0]), _shape(op, op.output("Output")[0])[1:]
    each = prod(filters[1:]) + bool(op.input("Bias"))
    return Count(op.type, _shape(op, op.input("Input")[0])[1:], made, filters[0] * each, 2 * prod(made) * each)


def _pooling(op):
    given, made = (_shape(op, name)[1:] for name in (op.input("X")[0], op.output("Out")[0]))
    window = given[1:] if op.attrs.get("global_pooling") else op.attrs["ksize"]
    return Count(op.type, given, made, 0, prod(made) * prod(window))


def _product(op):
    given, weight, made = (_shape(op, name) for name in (op.input("X")[0], op.input("Y")[0], op.output("Out")[0]))
    return Count(op.type, given[1:], made[1:], prod(weight) + 1, prod(weight))


def _activation(op):
    given, made = (_shape(op, name)[1:] for name in (op.input("X")[0], op.output("Out")[0]))
    return Count(op.type, given, made, int(op.type == "prelu"), prod(given))


def _normalization(op):
    given, made = (_shape(op, name)[1:] for name in (op.input("X")[0], op.output("Y")[0]))
    return Count(op.type, given, made, 2 * given[0], 2 * prod(given))


_COUNTERS = {**dict.fromkeys(("conv2d", "depthwise_conv2d"), _convolution), "pool2d": _pooling, "mul": _product,
             **dict.fromkeys(("sigmoid", "tanh", "relu", "leaky_relu", "prelu"), _activation),
             "batch_norm": _normalization}


def _table(rows):
    """Rows of words between rules, each column as wide as its widest word."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    lines = ["|".join(["", *(f" {word:>{width}} " for word, width in zip(row, widths)), ""]) for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])
