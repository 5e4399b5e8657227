"""Elements by position: rows of tables, slices, gather, one_hot, where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.export.onnx_ops.shaping import given
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.manipulation import axis_of

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step


def lookup(k: Step) -> None:
    """Rows of a table by id; those of ``padding_idx`` are zeros."""
    ids, rank = as_positions(k, "Ids"), len(k.shape("Ids"))
    if k.op.type == "lookup_table":
        ids, rank = k.squeezed(ids, [rank - 1]), rank - 1
    rows, padding = k.node("Gather", k["W"], ids, axis=0), k.attr("padding_idx", -1)
    if padding >= 0:
        is_padding = k.unsqueezed(k.node("Equal", ids, k.constant(padding)), [rank])
        rows = k.node("Where", is_padding, k.constant(0, k.dtype("W")), rows)
    k.put("Out", rows)


def as_positions(k: Step, slot: str) -> str:
    """An input as int64."""
    return k[slot] if k.dtype(slot) == np.int64 else k.cast(k[slot], "int64")


def slice_(k: Step) -> None:
    """From ``starts`` to ``ends`` along ``axes``, by ``strides``."""
    axes = [axis_of(k, axis, len(k.shape("Input"))) for axis in k.attr("axes")]
    starts = given(k, "starts", "StartsTensor", "StartsTensorList")
    ends = given(k, "ends", "EndsTensor", "EndsTensorList")
    strides = given(k, "strides", "StridesTensor", "StridesTensorList")
    if not (k.has("StridesTensor") or k.has("StridesTensorList") or k.attr("strides")):
        strides = k.constant([1] * len(axes))
    made = k.node("Slice", k["Input"], starts, ends, k.constant(axes), strides)
    dropped = sorted({axis_of(k, axis, len(k.shape("Input"))) for axis in k.attr("decrease_axis", ())})
    k.put("Out", k.reshape(made, [1]) if dropped and len(dropped) == len(k.shape("Input"))
          else k.squeezed(made, dropped))


def gather(k: Step) -> None:
    """Slices of X along an axis."""
    axis = k.attr("axis", 0)
    if k.has("Axis"):
        known = k.known("Axis")
        if known is None:
            k.refuse("an axis that is a variable")
        axis = int(np.asarray(known).reshape(-1)[0])
    k.put("Out", k.node("Gather", k["X"], k.reshape(as_positions(k, "Index"), [-1]),
                        axis=axis_of(k, axis, len(k.shape("X")))))


def gather_nd(k: Step) -> None:
    """Parts of X at the positions that the last dimension of Index names."""
    k.put("Out", k.node("GatherND", k["X"], as_positions(k, "Index")))


def one_hot(k: Step) -> None:
    """Compared with the numbers from 0 up: 1 at the place that the id names."""
    if k.has("depth_tensor"):
        k.refuse("a depth that is a variable")
    ids, rank = as_positions(k, "X"), len(k.shape("X"))
    ids = ids if k.op.type == "one_hot" else k.unsqueezed(ids, [rank])   # the first form has a last dimension of 1
    k.put("Out", k.cast(k.node("Equal", ids, k.constant(range(k.attr("depth")))), as_dtype(k.attr("dtype"))))


def where(k: Step) -> None:
    """X where the condition is true, Y elsewhere."""
    k.put("Out", k.node("Where", k["Condition"], k["X"], k["Y"]))


CONVERTERS = {"lookup_table": lookup, "lookup_table_v2": lookup, "slice": slice_, "strided_slice": slice_,
              "gather": gather, "gather_nd": gather_nd, "one_hot": one_hot, "one_hot_v2": one_hot, "where": where}

