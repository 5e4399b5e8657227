"""Several variables made one, and one cut into several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.program.ops.combining import known_axis, new_axis, sections_of

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step


def axis_in(k: Step, slot: str) -> int:
    """The attribute ``axis``, or the constant that stands for it, from 0 up."""
    axis = known_axis(k, slot)
    if axis is None:
        k.refuse("an axis that is a variable")
    found: int = axis
    return found


def concat(k: Step) -> None:
    """One behind the other along an axis."""
    k.put("Out", k.node("Concat", *k.all("X"), axis=axis_in(k, "X")))


def split(k: Step) -> None:
    """Equal pieces, or sections."""
    axis, count = axis_in(k, "X"), k.count("Out")
    if k.has("SectionsTensorList"):
        k.refuse("sections that are variables")
    sizes = sections_of(k, k.shape("X")[axis])
    if -1 not in sizes:
        pieces = k.nodes("Split", count, k["X"], k.constant(sizes), axis=axis)
    elif k.attr("sections"):
        k.refuse("sections of an unknown size")
    else:
        pieces = k.nodes("Split", count, k["X"], axis=axis, num_outputs=count)
    for i, piece in enumerate(pieces):
        k.put("Out", piece, i)


def stack(k: Step) -> None:
    """Side by side along a new dimension."""
    axis = new_axis(k, len(k.shape("X")))
    k.put("Y", k.node("Concat", *(k.unsqueezed(one, [axis]) for one in k.all("X")), axis=axis))


def unstack(k: Step) -> None:
    """Slices along a dimension, which is dropped."""
    axis, count = axis_in(k, "X"), k.count("Y")
    for i, piece in enumerate(k.nodes("Split", count, k["X"], k.constant([1] * count), axis=axis)):
        k.put("Y", k.squeezed(piece, [axis]), i)


def assign(k: Step) -> None:
    """The same value under another name."""
    k.put("Out", k["X"])


CONVERTERS = {"concat": concat, "split": split, "stack": stack, "unstack": unstack, "assign": assign}
