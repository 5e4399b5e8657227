"""Ops that make values from shapes and attributes: constants, ranges, the shape of a variable."""

import numpy as np

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.manipulation import product
from fleet_mpi.program.ops.variable_arguments import given_numbers

SHAPE_VARIABLES = "ShapeTensor? ShapeTensorList*"


def infer_filled(k):
    """Shape and element type are attributes (or the shape comes from variables)."""
    k.set("Out", given_numbers(k), as_dtype(k.attr("dtype", "float32")), lod=())


def scalar(value, dtype):
    """A Python number of the kind of ``dtype``; whole numbers given as text keep all their digits."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return float(value)
    if kind == "b":
        return bool(float(value))
    try:
        return int(value)
    except ValueError:
        return int(float(value))


def held(k, slot, values):
    """The call that writes values known when the plan is made."""
    out, xp = k[slot], k.xp
    source = xp.asarray(np.ascontiguousarray(values, dtype=out.dtype).reshape(out.shape))
    return lambda: xp.copyto(out, source)


@op("fill_constant", f"{SHAPE_VARIABLES} ValueTensor?", attrs={"shape": [1], "value": 0.0, "dtype": "float32"},
    constant=True)
class FillConstant:
    """One value everywhere."""

    infer = infer_filled

    def run(k):
        out, held, xp = k["Out"], k["ValueTensor"], k.xp
        if held is not None:
            return lambda: xp.copyto(out, held.reshape(-1)[:1], casting="unsafe")
        value = scalar(k.attr("str_value") or k.attr("value"), out.dtype)
        return lambda: out.fill(value)


def batch_size_of(k):
    """The size taken over from the input: its rows or, where dimension 0 is meant, its sequences."""
    dim, lod = k.attr("input_dim_idx"), k.lod("Input")
    if dim == 0 and lod:
        return len(lod[-1]) - 1 if lod[-1] else -1
    return k.shape("Input")[dim]


def infer_batch_size_like(k):
    """``shape`` with one size taken over from the input."""
    shape = list(k.attr("shape"))
    shape[k.attr("output_dim_idx")] = batch_size_of(k)
    k.set("Out", shape, as_dtype(k.attr("dtype", "float32")), lod=())


BATCH_SIZE_LIKE = {"shape": [], "dtype": "float32", "input_dim_idx": 0, "output_dim_idx": 0}


@op("fill_constant_batch_size_like", "Input", attrs={**BATCH_SIZE_LIKE, "value": 0.0})
class FillConstantBatchSizeLike:
    """One value everywhere, as many rows as the input has."""

    infer = infer_batch_size_like
    run = FillConstant.run


@op("fill_any_like", "X", attrs={"value": 0.0, "dtype": None})
class FillAnyLike:
    """One value everywhere, in the shape of X."""

    def infer(k):
        """As X, unless another element type is asked for."""
        dtype = k.attr("dtype")
        k.set("Out", k.shape("X"), as_dtype(dtype) if dtype else None)

    run = FillConstant.run


@op("fill_zeros_like", "X")
class FillZerosLike:
    """Zeros in the shape of X."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        out = k["Out"]
        return lambda: out.fill(0)


@op("assign_value", attrs={"shape": [], "dtype": "float32", "values": []}, constant=True)
class AssignValue:
    """The values of an array or list."""

    def infer(k):
        """As many values as the shape holds."""
        if product(k.attr("shape")) != np.size(k.attr("values")):
            k.fail(f"expected {product(k.attr('shape'))} values for shape {list(k.attr('shape'))}, "
                   f"got {np.size(k.attr('values'))}")
        k.set("Out", k.attr("shape"), as_dtype(k.attr("dtype")), lod=())

    def run(k):
        return held(k, "Out", k.attr("values"))


@op("shape", "Input")
class Shape:
    """The sizes of a variable's dimensions, int32."""

    def infer(k):
        """One number for each dimension; known as soon as the shapes are."""
        shape = k.shape("Input")
        k.set("Out", [len(shape)], np.int32, lod=())
        if k.concrete:
            k.meta("Out").known = np.array(shape, np.int32)

    def run(k):
        return held(k, "Out", k.shape("Input"))


@op("size", "Input")
class Size:
    """The number of elements of a variable, int64 [1]."""

    def infer(k):
        k.set("Out", [1], np.int64, lod=())
        if k.concrete:
            k.meta("Out").known = np.array([k.meta("Input").size], np.int64)

    def run(k):
        return held(k, "Out", [k.meta("Input").size])


def number(k, slot):
    """The one number in a slot, or None where only the run will tell."""
    value = k.known(slot)
    return None if value is None else value.reshape(-1)[0].item()


@op("range", "Start End Step")
class Range:
    """Numbers from Start up to, but not including, End."""

    def infer(k):
        """How many there are depends on the values."""
        start, end, step = (number(k, slot) for slot in ("Start", "End", "Step"))
        if None in (start, end, step):
            k.set("Out", [-1], k.dtype("Start"), lod=())
            return
        if step == 0:
            k.fail("expected a step other than 0")
        k.set("Out", [max(int(np.ceil((end - start) / step)), 0)], k.dtype("Start"), lod=())

    def run(k):
        """Counted in float64, so that no rounding adds up."""
        count, kind = k.shape("Out")[0], np.int64 if k.dtype("Out").kind == "i" else np.float64
        return held(k, "Out", number(k, "Start") + np.arange(count, dtype=kind) * number(k, "Step"))


@op("linspace", "Start Stop Num", attrs={"dtype": None})
class Linspace:
    """Num numbers evenly from Start to Stop, both included."""

    def infer(k):
        """How many there are is a value."""
        count = number(k, "Num")
        k.set("Out", [-1 if count is None else count], as_dtype(k.attr("dtype", k.dtype("Start"))), lod=())

    def run(k):
        return held(k, "Out", np.linspace(number(k, "Start"), number(k, "Stop"), k.shape("Out")[0]))


@op("eye", attrs={"num_rows": 1, "num_columns": -1, "dtype": "float32"}, constant=True)
class Eye:
    """Ones on the diagonal, zeros elsewhere."""

    def infer(k):
        k.set("Out", eye_shape(k), as_dtype(k.attr("dtype")), lod=())

    def run(k):
        return held(k, "Out", np.eye(*eye_shape(k)))


def eye_shape(k):
    """Rows and columns; a square where columns are not given."""
    rows, columns = k.attr("num_rows"), k.attr("num_columns")
    return [rows, rows if columns == -1 else columns]


@op("diag", "Diagonal")
class Diag:
    """A square matrix with a vector on its diagonal."""

    def infer(k):
        """As many rows and columns as the vector is long."""
        size = product(k.shape("Diagonal"))
        k.set("Out", [size, size], lod=())

    def run(k):
        """Clear, then fill every size + 1st element."""
        line, out, xp = k["Diagonal"].reshape(-1), k["Out"], k.xp
        diagonal = out.reshape(-1)[::out.shape[0] + 1]
        return lambda: (out.fill(0), xp.copyto(diagonal, line))
