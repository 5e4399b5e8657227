"""Ops that clip gradients, dense or Rows, and the merging of rows by id that must come first.

Sums of squares are float64 and go over a tree of positions (``kernels.update.square_sum``; of Rows, those in
the whole variable): the same bits however a variable is cut. What makes Rows gives one object per plan, whose
arrays change with every run.
"""

from fleet_mpi import arrays
from fleet_mpi.program.graph.registry import op
from fleet_mpi.update_rules import MergedRows, RowMerger, square_sum, square_sum_rows


def infer_like(k):
    """As X, of its kind."""
    k.set("Out", k.shape("X"), kind=k.meta("X").kind)


def infer_number(k):
    """One float64."""
    k.set("Out", [1], "float64", lod=())


def bind_elementwise(k, function):
    """The call of ``function(x, out)`` on a dense X, or on the values of its rows."""
    x = k["X"]
    if not isinstance(x, arrays.Rows):
        out = k["Out"]
        return lambda: function(x, out)
    merged, values = MergedRows(x.ids, x.values, x.height), k.xp.empty_like(x.values)
    k.put("Out", merged)

    def run():
        merged.ids, merged.values = x.ids, values[:len(x)]
        function(x.values, merged.values)
    return run


def squares_of(value):
    """A function that gives the sum of squares of a dense value or of Rows, as they are at the call.

    Rows count where they lie in the whole variable, so that the bits are those of a dense gradient.
    """
    if not isinstance(value, arrays.Rows):
        return lambda: square_sum(value)
    merge = RowMerger()

    def total():
        merged = merge(value)
        return square_sum_rows(merged.ids, merged.values)
    return total


@op("merge_selected_rows", "X")
class MergeSelectedRows:
    """Rows with the same id summed, in order of first occurrence."""

    infer = infer_like

    def run(k):
        """Merge into buffers of the op."""
        rows, merge = k["X"], RowMerger()
        if not isinstance(rows, arrays.Rows):
            k.fail("expected a row gradient")
        merged = MergedRows(rows.ids, rows.values, rows.height)
        k.put("Out", merged)

        def run():
            found = merge(rows)
            merged.ids, merged.values = found.ids, found.values
        return run


@op("squared_l2_norm", "X")
class SquaredL2Norm:
    """The sum of squares of all elements, float64 [1]; of Rows, after equal ids are merged."""

    infer = infer_number

    def run(k):
        squares, out, xp = squares_of(k["X"]), k["Out"], k.xp
        return lambda: xp.copyto(out, squares())


@op("global_norm_scale", "X", attrs={"clip_norm": 1.0})
class GlobalNormScale:
    """The factor that brings gradients, X being the sum of their squares, to ``clip_norm``; 1 if they are below."""

    infer = infer_number

    def run(k):
        """clip_norm / max(sqrt(X), clip_norm)."""
        x, out, xp, norm = k["X"], k["Out"], k.xp, float(k.attr("clip_norm"))

        def run():
            xp.sqrt(x, out=out)
            xp.maximum(out, norm, out=out)
            xp.divide(norm, out, out=out)
        return run


@op("multiply_by_scale", "X Scale", inplace={"Out": "X"})
class MultiplyByScale:
    """A gradient times one number, rounded to the gradient's type first."""

    infer = infer_like

    def run(k):
        scale, xp = k["Scale"], k.xp
        narrow = k.scratch((1,), k.dtype("X"))

        def multiply(x, out):
            narrow[...] = scale
            xp.multiply(x, narrow, out=out)
        return bind_elementwise(k, multiply)


@op("clip_by_norm", "X", attrs={"max_norm": 1.0})
class ClipByNorm:
    """X, scaled down to ``max_norm`` where its norm is above."""

    infer = infer_like

    def run(k):
        xp, norm, squares = k.xp, float(k.attr("max_norm")), squares_of(k["X"])

        def clip(x, out):
            factor = norm / xp.maximum(xp.sqrt(squares()), norm)
            xp.multiply(x, factor.astype(x.dtype), out=out)
        return bind_elementwise(k, clip)


@op("clip_rows", "X", attrs={"min": -1.0, "max": 1.0})
class ClipRows:
    """The rows of a row gradient with every element brought into [min, max]."""

    infer = infer_like

    def run(k):
        xp, low, high = k.xp, float(k.attr("min")), float(k.attr("max"))
        return bind_elementwise(k, lambda x, out: xp.clip(x, low, high, out=out))
