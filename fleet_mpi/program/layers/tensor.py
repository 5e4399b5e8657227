"""Layers that make variables: parameters, constants, ranges, random numbers, copies."""

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.build.variable_arguments import number_given, numbers_given
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.single_op import single_op


def create_tensor(dtype, name=None, persistable=False):
    """A variable without a value: ``assign`` gives it one."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter of its own, for use in ops that no layer wraps."""
    helper = LayerHelper("create_parameter")
    attr = ParamAttr(name=name) if attr is None else attr
    return helper.create_parameter(attr, shape, dtype, is_bias, default_initializer)


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    """A variable of block 0, filled with one value by the startup program."""
    helper = LayerHelper("global_var")
    named = {} if name is None else {"name": name}
    var = helper.create_global_variable(dtype=dtype, shape=shape, persistable=persistable, stop_gradient=True, **named)
    helper.set_variable_initializer(var, Constant(value))
    return var


def _filled(type, shape, dtype, attrs, out=None, name=None, inputs=None):
    """One op that fills a variable of this shape; its gradient stops there."""
    helper = LayerHelper(type, name=name)
    size_inputs, sizes = numbers_given(type, shape)
    out = helper.create_variable_for_type_inference(dtype) if out is None else out
    helper.append_op(type, {**size_inputs, **(inputs or {})}, {"Out": [out]},
                     {"shape": sizes, "dtype": as_dtype(dtype).name, **attrs})
    out.stop_gradient = True
    return out


def fill_constant(shape, dtype, value, force_cpu=False, out=None, name=None):
    """One value everywhere; the shape may hold variables, and the value be one."""
    inputs, attrs = number_given(value, "value", "ValueTensor", _plain)
    return _filled("fill_constant", shape, dtype, attrs, out, name, inputs=inputs)


def _plain(value):
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def ones(shape, dtype, force_cpu=False):
    """Ones."""
    return fill_constant(shape, dtype, 1.0)


def zeros(shape, dtype, force_cpu=False):
    """Zeros."""
    return fill_constant(shape, dtype, 0.0)


def full_like(x, fill_value, dtype=None, out=None, name=None):
    """One value everywhere, in the shape of ``x``."""
    helper = LayerHelper("full_like", name=name)
    out = helper.create_variable_for_type_inference(dtype or helper.require(x, "x").dtype) if out is None else out
    helper.append_op("fill_any_like", {"X": [x]}, {"Out": [out]},
                     {"value": float(fill_value), "dtype": as_dtype(dtype).name if dtype else None})
    out.stop_gradient = True
    return out


def ones_like(x, out=None):
    """Ones in the shape of ``x``."""
    return full_like(x, 1.0, out=out)


def zeros_like(x, out=None):
    """Zeros in the shape of ``x``."""
    return full_like(x, 0.0, out=out)


def fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False):
    """One value everywhere, one size of the shape taken over from ``input``."""
    return _batch_size_like("fill_constant_batch_size_like", input, shape, dtype, input_dim_idx, output_dim_idx,
                            {"value": _plain(value)})


def _batch_size_like(type, input, shape, dtype, input_dim_idx, output_dim_idx, attrs):
    out = single_op(type, {"Input": input}, {
        "shape": [int(size) for size in shape], "dtype": as_dtype(dtype).name, "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx, **attrs}, dtype=dtype)
    out.stop_gradient = True
    return out


def assign(input, output=None):
    """A copy of a variable, an array, a list or a number, in ``output`` if one is given."""
    helper = LayerHelper("assign")
    if isinstance(input, Variable):
        out = helper.create_variable_for_type_inference(input.dtype) if output is None else output
        helper.append_op("assign", {"X": [input]}, {"Out": [out]})
        return out
    values = np.array(input)
    if values.dtype.kind not in "fiub":
        raise UsageError(f"assign: expected a variable, an array or numbers, got {type(input).__name__}")
    # As the original does: Python's floats are float64, but scripts compute in float32.
    values = values.astype("float32") if values.dtype == np.float64 else values
    out = helper.create_variable_for_type_inference(values.dtype) if output is None else output
    helper.append_op("assign_value", outputs={"Out": [out]},
                     attrs={"shape": list(values.shape) or [1], "dtype": values.dtype.name, "values": values})
    return out


def shape(input):
    """The sizes of the dimensions, int32; known while planning, so that shapes may depend on them."""
    return single_op("shape", {"Input": input}, dtype="int32")


def size(input):
    """The number of elements, int64."""
    return single_op("size", {"Input": input}, dtype="int64")


def _as_variables(helper, dtype, *values):
    return [value if isinstance(value, Variable) else fill_constant([1], dtype, value) for value in values]


def range(start, end, step, dtype):
    """Numbers from ``start`` up to, but not including, ``end``."""
    helper = LayerHelper("range")
    start, end, step = _as_variables(helper, dtype, start, end, step)
    return single_op("range", {"Start": start, "End": end, "Step": step}, dtype=dtype)


def linspace(start, stop, num, dtype="float32", name=None):
    """``num`` numbers evenly from ``start`` to ``stop``, both included."""
    helper = LayerHelper("linspace", name=name)
    start, stop = _as_variables(helper, dtype, start, stop)
    num, = _as_variables(helper, "int32", num)
    return single_op("linspace", {"Start": start, "Stop": stop, "Num": num}, {"dtype": as_dtype(dtype).name},
                     name=name, dtype=dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """Ones on the diagonal; with ``batch_shape``, so many such matrices."""
    helper = LayerHelper("eye", name=name)
    out = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    columns = num_rows if num_columns is None else num_columns
    helper.append_op("eye", outputs={"Out": [out]},
                     attrs={"num_rows": num_rows, "num_columns": columns, "dtype": as_dtype(dtype).name})
    if batch_shape:
        repeats = {"repeat_times": [*batch_shape, 1, 1]}
        out = single_op("tile", {"X": out}, repeats, layer="eye")
        out.stop_gradient = True
    return out


def diag(diagonal):
    """A square matrix with a vector on its diagonal."""
    return single_op("diag", {"Diagonal": assign(diagonal) if isinstance(diagonal, np.ndarray) else diagonal})


def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0, name=None):
    """Evenly distributed between ``min`` and ``max``."""
    return _filled("uniform_random", shape, dtype, {"min": float(min), "max": float(max), "seed": seed}, name=name)


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32", name=None):
    """Normally distributed."""
    return _filled("gaussian_random", shape, dtype, {"mean": float(mean), "std": float(std), "seed": seed}, name=name)


def uniform_random_batch_size_like(input, shape, dtype="float32", input_dim_idx=0, output_dim_idx=0, min=-1.0,
                                   max=1.0, seed=0):
    """Evenly distributed, one size of the shape taken over from ``input``."""
    return _batch_size_like("uniform_random_batch_size_like", input, shape, dtype, input_dim_idx, output_dim_idx,
                            {"min": float(min), "max": float(max), "seed": seed})


def gaussian_random_batch_size_like(input, shape, input_dim_idx=0, output_dim_idx=0, mean=0.0, std=1.0, seed=0,
                                    dtype="float32"):
    """Normally distributed, one size of the shape taken over from ``input``."""
    return _batch_size_like("gaussian_random_batch_size_like", input, shape, dtype, input_dim_idx, output_dim_idx,
                            {"mean": float(mean), "std": float(std), "seed": seed})


def randint(low=0, high=None, shape=(1,), dtype=None, name=None):
    """Whole numbers from ``low`` (or 0) up to, but not including, ``high`` (or ``low``)."""
    low, high = (0, low) if high is None else (low, high)
    return _filled("randint", shape, dtype or "int64", {"low": low, "high": high}, name=name)


def randperm(n, dtype="int64", name=None):
    """0 .. n - 1 in a random order."""
    helper = LayerHelper("randperm", name=name)
    out = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op("randperm", outputs={"Out": [out]}, attrs={"n": n, "dtype": as_dtype(dtype).name})
    return out
