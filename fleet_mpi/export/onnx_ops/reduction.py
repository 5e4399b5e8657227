"""Sums, means and extremes over dimensions; norms; positions of extremes, sorting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.manipulation import axis_of
from fleet_mpi.program.ops.reduction import reduced_axes
from fleet_mpi.program.ops.scaling import norm_axes, one_axis

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet_mpi.export.onnx_graph import Step


def mean(k: Step) -> None:
    """The mean of all elements, [1]."""
    k.put("Out", k.reshape(k.node("ReduceMean", k["X"], keepdims=0), [1]))


def reduced(type: str, logic: bool = False) -> Callable[[Step], None]:
    """The converter to a reduction; ``logic``: of bools, by way of numbers."""
    def convert(k: Step) -> None:
        rank, keep = len(k.shape("X")), bool(k.attr("keep_dim", False))
        axes = reduced_axes(k, rank)
        x = k.cast(k["X"], "int32") if logic else k["X"]
        made = k.node(type, x, k.constant(axes), keepdims=int(keep))
        made = k.cast(made, "bool") if logic else made
        k.put("Out", made if keep or len(axes) < rank else k.reshape(made, [1]))
    return convert


def p_norm(k: Step) -> None:
    """The p-norm along an axis or of all elements."""
    p, keep = float(k.attr("porder")), bool(k.attr("keepdim"))
    axes = norm_axes(k, k.shape("X"))[0]
    size, x = {"keepdims": int(keep)}, k["X"]
    if math.isinf(p):
        made = k.node("ReduceMax" if p > 0 else "ReduceMin", k.node("Abs", x), k.constant(axes), **size)
    elif p in (1.0, 2.0):
        made = k.node(f"ReduceL{int(p)}", x, k.constant(axes), **size)
    elif p == 0:
        k.refuse("porder 0")
    else:
        powers = k.node("Pow", k.node("Abs", x), k.constant(p, k.dtype("X")))
        made = k.node("Pow", k.node("ReduceSum", powers, k.constant(axes), **size), k.constant(1 / p, k.dtype("X")))
    k.put("Out", made if keep or len(axes) < len(k.shape("X")) else k.reshape(made, [1]))


def norm(k: Step) -> None:
    """X divided by its Euclidean norm along an axis."""
    axis = one_axis(k, len(k.shape("X")))
    squares = k.node("ReduceSumSquare", k["X"], k.constant([axis]), keepdims=1)
    length = k.node("Sqrt", k.node("Add", squares, k.constant(float(k.attr("epsilon")), k.dtype("X"))))
    k.put("Out", k.node("Div", k["X"], length))
    k.put("Norm", length)


def extreme(type: str) -> Callable[[Step], None]:
    """The converter to the position of the largest or smallest element, the first of equal ones."""
    def convert(k: Step) -> None:
        rank, keep = len(k.shape("X")), bool(k.attr("keepdims"))
        if k.attr("flatten"):
            made = k.node(type, k.reshape(k["X"], [-1]), axis=0, keepdims=1)
            made = k.reshape(made, [1] * rank) if keep else made
        else:
            made = k.node(type, k["X"], axis=axis_of(k, k.attr("axis"), rank), keepdims=int(keep or rank == 1))
        dtype = as_dtype(k.attr("dtype", "int64"))
        k.put("Out", made if dtype == "int64" else k.cast(made, dtype))
    return convert


def top_k(k: Step) -> None:
    """The k largest or smallest elements along an axis, sorted."""
    axis = k.attr("axis") if k.op.type == "top_k_v2" else -1
    count = k.reshape(k.cast(k["K"], "int64"), [1]) if k.has("K") else k.constant([k.attr("k")])
    put_sorted(k, count, axis, bool(k.attr("largest", True)))


def argsort(k: Step) -> None:
    """As many of the largest or smallest as there are."""
    axis = axis_of(k, k.attr("axis"), len(k.shape("X")))
    put_sorted(k, k.sizes([("X", axis)]), axis, bool(k.attr("descending")))


def put_sorted(k: Step, count: str, axis: int, largest: bool) -> None:
    """Put the elements and where they were; of equal ones the first comes first."""
    rank = len(k.shape("X"))
    values, places = k.nodes("TopK", 2, k["X"], count, axis=axis_of(k, axis, rank), largest=int(largest), sorted=1)
    k.put("Out", values)
    k.put("Indices", places)


def cumsum(k: Step) -> None:
    """Running sums along an axis, or of all elements in a row."""
    flat = bool(k.attr("flatten"))
    x, axis = (k.reshape(k["X"], [-1]), 0) if flat else (k["X"], one_axis(k, len(k.shape("X"))))
    k.put("Out", k.node("CumSum", x, k.constant(axis), exclusive=int(bool(k.attr("exclusive"))),
                        reverse=int(bool(k.attr("reverse")))))


CONVERTERS = {
    "mean": mean, "reduce_sum": reduced("ReduceSum"), "reduce_mean": reduced("ReduceMean"),
    "reduce_max": reduced("ReduceMax"), "reduce_min": reduced("ReduceMin"), "reduce_prod": reduced("ReduceProd"),
    "reduce_all": reduced("ReduceMin", logic=True), "reduce_any": reduced("ReduceMax", logic=True),
    "norm": norm, "p_norm": p_norm, "cumsum": cumsum, "arg_max": extreme("ArgMax"), "arg_min": extreme("ArgMin"),
    "top_k": top_k, "top_k_v2": top_k, "argsort": argsort,
}
