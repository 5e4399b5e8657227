"""How many elements lie in each of equal intervals."""

import numpy as np

from fleet_mpi.program.graph.registry import op


@op("histogram", "X", attrs={"bins": 100, "min": 0, "max": 0})
class Histogram:
    """Counts in ``bins`` intervals from ``min`` to ``max`` (both included), or from the least to the largest element.

    The latter where min and max are equal; elements outside are left out.
    """

    def infer(k):
        """A count for each interval, int64."""
        if k.attr("bins") < 1 or k.attr("min") > k.attr("max"):
            k.fail(f"expected bins from 1 up and min <= max, got {k.attr('bins')}, {k.attr('min')} and {k.attr('max')}")
        k.set("Out", [k.attr("bins")], np.int64, lod=())

    def run(k):
        """Each element's interval by a division, then counts."""
        x, out, xp, bins = k["X"].reshape(-1), k["Out"], k.xp, int(k.attr("bins"))

        def run():
            low, high = limits(k, x)
            place = xp.floor((x - low) * (bins / (high - low)))
            inside = (x >= low) & (x <= high)
            number = xp.minimum(xp.where(inside, place, 0), bins - 1).astype("int64")
            xp.copyto(out, xp.bincount(number, weights=inside.astype("float64"), minlength=bins).astype("int64"))
        return run


def limits(k, x):
    """The ends of the range: as given, or the data's, set apart where all elements are equal."""
    low, high, xp = float(k.attr("min")), float(k.attr("max")), k.xp
    if low != high:
        return low, high
    if not x.size:
        return 0.0, 1.0
    least, largest = xp.min(x).astype("float64"), xp.max(x).astype("float64")
    alone = (least == largest).astype("float64")
    return least - alone, largest + alone
