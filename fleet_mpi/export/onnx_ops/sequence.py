"""Pooling of sequences by their offsets, an input of the model: 0, the end of the first, the end of the second, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.export.onnx_ops.shaping import HIGHEST

if TYPE_CHECKING:
    from fleet_mpi.export.onnx_graph import Step


class Spans:
    """The sequences of the input X."""

    def __init__(self, k: Step) -> None:
        if len(k.lod("X")) != 1:
            k.refuse(f"sequences of {len(k.lod('X'))} levels")
        self.k = k
        offsets, zero, one = k.graph.offsets_of(k.name("X")), k.constant([0]), k.constant([1])
        self.begins = k.node("Slice", offsets, zero, k.constant([-1]), zero)
        self.ends = k.node("Slice", offsets, one, k.constant([HIGHEST]), zero)
        self.lengths = k.node("Sub", self.ends, self.begins)
        self.are_empty = k.node("Equal", self.lengths, zero)
        self.rows = k.node("Shape", k["X"], start=0, end=1)

    def of_rows(self) -> str:
        """For every row the number of its sequence: how many sequences have begun, less one."""
        k, one = self.k, self.k.constant([1])
        none = k.node("Expand", k.constant(0), k.node("Add", self.rows, one))
        ones = k.node("Expand", k.constant(1), k.node("Shape", self.begins))
        begun = k.node("ScatterND", none, k.unsqueezed(self.begins, [1]), ones, reduction="add")
        counted = k.node("CumSum", k.node("Slice", begun, k.constant([0]), self.rows, k.constant([0])), k.constant(0))
        return k.unsqueezed(k.node("Sub", counted, one), [1])

    def column(self, value: str) -> str:
        """One value per sequence, with as many dimensions as X."""
        return self.k.unsqueezed(value, range(1, len(self.k.shape("X"))))

    def pooled(self, start: float, reduction: str) -> str:
        """The rows of each sequence put together, beginning with a number."""
        k = self.k
        sizes = k.node("Concat", k.node("Shape", self.begins), k.node("Shape", k["X"], start=1), axis=0)
        return k.node("ScatterND", k.node("Expand", k.constant(start, k.dtype("X")), sizes), self.of_rows(), k["X"],
                      reduction=reduction)


def pool(k: Step) -> None:
    """Each sequence's sum, average, sum / sqrt(length), largest, first or last; ``pad_value`` for an empty one."""
    spans, kind, dtype = Spans(k), str(k.attr("pooltype")).upper(), k.dtype("X")
    if kind in ("FIRST", "LAST"):
        place = spans.begins if kind == "FIRST" else k.node("Sub", spans.ends, k.constant([1]))
        # A row more, for empty sequences: whatever their place is, there may be no row.
        sizes = k.node("Concat", k.constant([1]), k.node("Shape", k["X"], start=1), axis=0)
        rows = k.node("Concat", k["X"], k.node("Expand", padding(k), sizes), axis=0)
        k.put("Out", k.node("Gather", rows, k.node("Where", spans.are_empty, spans.rows, place), axis=0))
        return
    if kind == "MAX":
        lowest = float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)
        made = spans.pooled(lowest, "max")
    else:
        made = spans.pooled(0, "add")
    if kind in ("AVERAGE", "SQRT"):
        lengths = k.cast(k.node("Max", spans.lengths, k.constant([1])), dtype)
        made = k.node("Div", made, spans.column(k.node("Sqrt", lengths) if kind == "SQRT" else lengths))
    k.put("Out", k.node("Where", spans.column(spans.are_empty), padding(k), made))


def padding(k: Step) -> str:
    """What an empty sequence gives."""
    dtype = k.dtype("X")
    return k.constant((float if dtype.kind == "f" else int)(k.attr("pad_value", 0.0)), dtype)


CONVERTERS = {"sequence_pool": pool}
