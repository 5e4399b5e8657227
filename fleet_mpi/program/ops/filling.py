"""Ops that make values from nothing: constants and random numbers."""

from fleet_mpi.program.registry import op
from fleet_mpi.program.types import as_dtype


def infer_filled(k):
    """Shape and element type are attributes."""
    k.set("Out", k.attr("shape"), as_dtype(k.attr("dtype", "float32")), lod=())


@op("fill_constant", attrs={"shape": [1], "value": 0.0, "dtype": "float32"})
class FillConstant:
    """One value everywhere."""

    infer = infer_filled

    def run(k):
        """Fill."""
        out, value = k["Out"], k.attr("value")
        value = out.dtype.type(float(value)) if isinstance(value, str) else out.dtype.type(value)
        return lambda: out.fill(value)


@op("fill_any_like", "X", attrs={"value": 0.0, "dtype": None})
class FillAnyLike:
    """One value everywhere, in the shape of X."""

    def infer(k):
        """As X, unless another element type is asked for."""
        dtype = k.attr("dtype")
        k.set("Out", k.shape("X"), as_dtype(dtype) if dtype else None)

    def run(k):
        """Fill."""
        out, value = k["Out"], k.attr("value")
        return lambda: out.fill(value)
