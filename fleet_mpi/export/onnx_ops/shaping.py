"""Other shapes and orders of the same elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.ops.manipulation import axis_of

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step

# ONNX's slices take any end beyond the data for "to the end".
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


def given(k: Step, attr: str, whole: str, parts: str) -> str:
    """Numbers as an int64 value: an attribute, a variable, or a list of variables with one number each."""
    if k.has(whole):
        return k.reshape(k.cast(k[whole], "int64"), [-1])
    if k.has(parts):
        return k.node("Concat", *(k.reshape(k.cast(one, "int64"), [-1]) for one in k.all(parts)), axis=0)
    return k.constant([int(one) for one in k.attr(attr, ())])


def reshape(k: Step) -> None:
    """0 keeps a size and -1 takes what is left, in ONNX too."""
    k.put("Out", k.node("Reshape", k["X"], given(k, "shape", "Shape", "ShapeTensor")))


def squeeze(k: Step) -> None:
    """Without dimensions of size 1: all of them, or those named that are 1 (or unknown)."""
    shape = k.shape("X")
    axes = {axis_of(k, axis, len(shape)) for axis in k.attr("axes", ())}
    if not axes and -1 in shape:
        k.refuse(f"all dimensions of size 1 of a variable {list(shape)}; name the axes")
    dropped = [i for i, size in enumerate(shape) if size == 1 and (not axes or i in axes) or size == -1 and i in axes]
    k.put("Out", k.squeezed(k["X"], dropped))


def unsqueeze(k: Step) -> None:
    """Dimensions of size 1 put in one after the other."""
    if k.has("AxesTensor") or k.has("AxesTensorList"):
        k.refuse("axes that are variables")
    places: list[bool] = [False] * len(k.shape("X"))   # of the result: whether a dimension is new
    for axis in k.attr("axes"):
        places.insert(axis_of(k, axis, len(places) + 1), True)
    k.put("Out", k.unsqueezed(k["X"], [i for i, is_new in enumerate(places) if is_new]))


def flatten(k: Step) -> None:
    """A matrix: the dimensions before ``axis`` are its rows."""
    k.put("Out", k.node("Flatten", k["X"], axis=k.attr("axis")))


def flatten_range(k: Step) -> None:
    """The dimensions from ``start_axis`` to ``stop_axis`` made one."""
    rank = len(k.shape("X"))
    start, stop = (axis_of(k, k.attr(name), rank) for name in ("start_axis", "stop_axis"))
    # Not -1 and the size of another dimension that is unknown: 0 keeps those in front.
    sizes = [0] * start + [-1] + [("X", axis) for axis in range(stop + 1, rank)]
    k.put("Out", k.node("Reshape", k["X"], k.sizes(sizes)))


def transpose(k: Step) -> None:
    """The dimensions in another order."""
    order = k.attr("axis")
    k.put("Out", k.node("Transpose", k["X"], perm=[one % len(order) for one in order]))


def reverse(k: Step) -> None:
    """Back to front along dimensions."""
    axes = k.attr("axis")
    axes = [axis_of(k, axis, len(k.shape("X"))) for axis in ([axes] if isinstance(axes, int) else axes)]
    count = len(axes)
    k.put("Out", k.node("Slice", k["X"], k.constant([-1] * count), k.constant([LOWEST] * count), k.constant(axes),
                        k.constant([-1] * count)))


CONVERTERS = {
    "reshape": reshape, "reshape2": reshape, "squeeze": squeeze, "squeeze2": squeeze, "unsqueeze": unsqueeze,
    "unsqueeze2": unsqueeze, "flatten": flatten, "flatten2": flatten, "flatten_contiguous_range": flatten_range,
    "transpose": transpose, "transpose2": transpose, "reverse": reverse, "flip": reverse,
}
