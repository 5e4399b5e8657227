"""Arithmetic, comparison and logic, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.graph.types import is_float
from fleet_mpi.program.ops.elementwise import aligned

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet_mpi.export.onnx_graph import Step


def operands(k: Step) -> tuple[str, str]:
    """X, and Y with ones added as ``axis`` says."""
    shape = k.shape("Y")
    wanted = aligned(shape, len(k.shape("X")), k.attr("axis", -1))
    kept = min(len(shape), len(wanted))
    if wanted == tuple(shape):
        return k["X"], k["Y"]
    if wanted[:len(shape)] == tuple(shape):
        return k["X"], k.unsqueezed(k["Y"], range(len(shape), len(wanted)))
    # Ones at the end of Y that do not fit into X.
    return k["X"], k.reshape(k["Y"], [("Y", axis) for axis in range(kept)] + [1] * (len(wanted) - kept))


def plain(type: str, negated: bool = False) -> Callable[[Step], None]:
    """The converter to an op that takes X and Y; ``negated``: to the opposite of its answer."""
    def convert(k: Step) -> None:
        made = k.node(type, *operands(k))
        k.put("Out", k.node("Not", made) if negated else made)
    return convert


def one_sided(*types: str) -> Callable[[Step], None]:
    """The converter to ops of X, one after the other."""
    def convert(k: Step) -> None:
        made = k["X"]
        for type in types:
            made = k.node(type, made)
        k.put("Out", made)
    return convert


def divide(k: Step) -> None:
    """Of whole numbers the whole part of the quotient."""
    x, y = operands(k)
    if is_float(k.dtype("X")):
        k.put("Out", k.node("Div", x, y))
    else:
        k.put("Out", k.cast(k.node("Div", k.cast(x, "float64"), k.cast(y, "float64")), k.dtype("X")))


def floor_divide(k: Step) -> None:
    """The quotient rounded down."""
    (x, y), dtype = operands(k), k.dtype("X")
    if is_float(dtype):
        k.put("Out", k.node("Floor", k.node("Div", x, y)))
    else:
        k.put("Out", k.cast(k.node("Floor", k.node("Div", k.cast(x, "float64"), k.cast(y, "float64"))), dtype))


def remainder(k: Step) -> None:
    """With the sign of Y; ONNX's op has it for whole numbers alone."""
    x, y = operands(k)
    if is_float(k.dtype("X")):
        k.put("Out", k.node("Sub", x, k.node("Mul", k.node("Floor", k.node("Div", x, y)), y)))
    else:
        k.put("Out", k.node("Mod", x, y))


def add_all(k: Step) -> None:
    """The sum of any number of variables, in their order."""
    first, *rest = k.all("X")
    for value in rest:
        first = k.node("Add", first, value)
    k.put("Out", first)


def is_finite(k: Step) -> None:
    """Neither infinite nor no number."""
    k.put("Out", k.node("Not", k.node("Or", k.node("IsInf", k["X"]), k.node("IsNaN", k["X"]))))


CONVERTERS = {
    "elementwise_add": plain("Add"), "elementwise_sub": plain("Sub"), "elementwise_mul": plain("Mul"),
    "elementwise_div": divide, "elementwise_max": plain("Max"), "elementwise_min": plain("Min"),
    "elementwise_pow": plain("Pow"), "elementwise_mod": remainder, "elementwise_floordiv": floor_divide,
    "minus": plain("Sub"), "sum": add_all,
    "less_than": plain("Less"), "less_equal": plain("LessOrEqual"), "greater_than": plain("Greater"),
    "greater_equal": plain("GreaterOrEqual"), "equal": plain("Equal"), "not_equal": plain("Equal", negated=True),
    "logical_and": plain("And"), "logical_or": plain("Or"), "logical_xor": plain("Xor"),
    "logical_not": one_sided("Not"), "isnan_v2": one_sided("IsNaN"), "isinf_v2": one_sided("IsInf"),
    "isfinite_v2": is_finite,
}
