"""Variables repeated, stretched, or with a border."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.export.onnx_ops.shaping import given
from fleet_mpi.program.ops.stretching import image_pairs, pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.export.onnx_graph import Step


def expand(k: Step) -> None:
    """Each dimension repeated."""
    k.put("Out", k.node("Tile", k["X"], given(k, "expand_times", "ExpandTimes", "expand_times_tensor")))


def tile(k: Step) -> None:
    """Each dimension repeated; the shorter of shape and counts gets ones in front."""
    if k.has("RepeatTimes") or k.has("repeat_times_tensor"):
        k.refuse("counts that are variables")
    counts, rank = list(k.attr("repeat_times")), len(k.shape("X"))
    x = k.unsqueezed(k["X"], range(max(len(counts) - rank, 0)))
    k.put("Out", k.node("Tile", x, k.constant([1] * (rank - len(counts)) + counts)))


def expand_v2(k: Step) -> None:
    """Stretched to a shape; -1 keeps a size, which 1 does too."""
    if k.has("Shape") or k.has("expand_shapes_tensor"):
        sizes = given(k, "shape", "Shape", "expand_shapes_tensor")
        sizes = k.node("Max", sizes, k.constant([1]))
    else:
        sizes = k.constant([1 if size == -1 else size for size in k.attr("shape")])
    k.put("Out", k.node("Expand", k["X"], sizes))


def expand_as(k: Step) -> None:
    """Repeated to the shape of another variable: tiled, where sizes are multiples."""
    counts = k.node("Div", k.node("Shape", k["target_tensor"]), k.node("Shape", k["X"]))
    k.put("Out", k.node("Tile", k["X"], counts))


def expand_as_v2(k: Step) -> None:
    """Stretched to the shape of another variable, or to one that is known."""
    sizes = k.node("Shape", k["Y"]) if k.has("Y") else k.constant(
        [1 if size == -1 else size for size in k.attr("target_shape")])
    k.put("Out", k.node("Expand", k["X"], sizes))


def pad(k: Step) -> None:
    """One value around X."""
    put_padded(k, pairs(k), "constant")


def pad2d(k: Step) -> None:
    """Images with a border."""
    if k.has("Paddings"):
        k.refuse("paddings that are variables")
    put_padded(k, image_pairs(k), k.attr("mode"))


def put_padded(k: Step, paddings: Sequence[tuple[int, int]], mode: str) -> None:
    """Put X between paddings."""
    flat = k.constant([before for before, _ in paddings] + [after for _, after in paddings])
    value = [k.constant(k.attr("pad_value", 0.0), k.dtype("X"))] if mode == "constant" else []
    k.put("Out", k.node("Pad", k["X"], flat, *value, mode=mode))


CONVERTERS = {"expand": expand, "tile": tile, "expand_v2": expand_v2, "expand_as": expand_as,
              "expand_as_v2": expand_as_v2, "pad": pad, "pad2d": pad2d}
