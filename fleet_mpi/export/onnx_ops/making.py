"""Constants, shapes of variables, and the same values scaled, clipped or in another type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.export.onnx_ops.shaping import given
from fleet_mpi.program.graph.types import as_dtype, is_float
from fleet_mpi.program.ops.filling import eye_shape, scalar
from fleet_mpi.program.ops.scaling import clip_limits, has_variable_limits

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step


def scale(k: Step) -> None:
    """X * scale + bias, or (X + bias) * scale; whole numbers by whole numbers."""
    dtype, number = k.dtype("X"), float if is_float(k.dtype("X")) else int
    factor, bias, value = number(k.attr("scale", 1.0)), number(k.attr("bias", 0.0)), k["X"]
    by = [("Mul", k.reshape(k["ScaleTensor"], [1]))] if k.has("ScaleTensor") else \
        [("Mul", k.constant(factor, dtype))] * (factor != 1)
    more = [("Add", k.constant(bias, dtype))] * (bias != 0)
    for type, operand in by + more if k.attr("bias_after_scale", True) else more + by:
        value = k.node(type, value, operand)
    k.put("Out", value)


def increment(k: Step) -> None:
    """X + step."""
    k.put("Out", k.node("Add", k["X"], k.constant(k.attr("step"), k.dtype("X"))))


def cast(k: Step) -> None:
    """Another element type."""
    k.put("Out", k.cast(k["X"], as_dtype(k.attr("out_dtype"))))


def clip(k: Step) -> None:
    """Between two limits, numbers or variables."""
    dtype = k.dtype("X")
    limits = [k.constant(limit, dtype) for limit in clip_limits(k)]
    if has_variable_limits(k):
        limits = [k.reshape(k.cast(k[slot], dtype), []) if k.has(slot) else limit
                  for slot, limit in zip(("Min", "Max"), limits)]
    k.put("Out", k.node("Clip", k["X"], *limits))


def fill_constant(k: Step) -> None:
    """One value in a shape that is an attribute or comes from variables."""
    dtype = as_dtype(k.attr("dtype", "float32"))
    value = filling(k, dtype)
    if k.has("ShapeTensor") or k.has("ShapeTensorList"):
        k.put("Out", k.node("Expand", value, given(k, "shape", "ShapeTensor", "ShapeTensorList")))
    elif k.has("ValueTensor"):
        k.put("Out", k.node("Expand", value, k.constant(k.attr("shape"))))
    else:
        k.put("Out", k.constant(np.full(k.attr("shape"), k.graph.constants[value]), dtype))


def filling(k: Step, dtype: np.dtype) -> str:
    """The value to fill with."""
    if k.has("ValueTensor"):
        return k.cast(k.reshape(k["ValueTensor"], [1]), dtype)
    return k.constant(scalar(k.attr("str_value") or k.attr("value", 0.0), dtype), dtype)


def fill_batch_size_like(k: Step) -> None:
    """One value in a shape of which one size is the input's."""
    if k.attr("input_dim_idx") == 0 and k.lod("Input"):
        k.refuse("the number of an input's sequences")
    sizes = list(k.attr("shape"))
    sizes[k.attr("output_dim_idx")] = ("Input", k.attr("input_dim_idx"))
    k.put("Out", k.node("Expand", filling(k, as_dtype(k.attr("dtype", "float32"))), k.sizes(sizes)))


def fill_like(k: Step) -> None:
    """One value in the shape of X."""
    dtype = as_dtype(k.attr("dtype")) if k.attr("dtype") else k.dtype("X")
    k.put("Out", k.node("Expand", filling(k, dtype), k.node("Shape", k["X"])))


def assign_value(k: Step) -> None:
    """The values of an array."""
    k.put("Out", k.constant(np.reshape(k.attr("values"), k.attr("shape")), as_dtype(k.attr("dtype"))))


def shape(k: Step) -> None:
    """The sizes of a variable, int32."""
    k.put("Out", k.cast(k.node("Shape", k["Input"]), "int32"))


def size(k: Step) -> None:
    """The number of elements, [1]."""
    k.put("Out", k.reshape(k.node("Size", k["Input"]), [1]))


def range_(k: Step) -> None:
    """Numbers from Start up to End."""
    k.put("Out", k.node("Range", *(k.reshape(k[slot], []) for slot in ("Start", "End", "Step"))))


def eye(k: Step) -> None:
    """Ones on the diagonal."""
    k.put("Out", k.constant(np.eye(*eye_shape(k)), as_dtype(k.attr("dtype"))))


CONVERTERS = {
    "scale": scale, "increment": increment, "cast": cast, "clip": clip, "fill_constant": fill_constant,
    "fill_constant_batch_size_like": fill_batch_size_like, "fill_any_like": fill_like, "fill_zeros_like": fill_like,
    "assign_value": assign_value, "shape": shape, "size": size, "range": range_, "eye": eye,
}
