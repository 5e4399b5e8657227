"""Tensor arrays: lists of tensors that a loop writes and reads by position."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.single_op import single_op


def create_array(dtype):
    """An array without tensors."""
    helper = LayerHelper("array")
    return helper.create_variable(name=unique_name.generate(f"{helper.name}.out"), dtype=dtype,
                                  type=VarType.LOD_TENSOR_ARRAY)


def array_write(x, i, array=None):
    """Put a copy of ``x`` at position ``i`` of an array, made if none is given; returns the array."""
    helper = LayerHelper("array_write")
    array = create_array(helper.require(x, "x").dtype) if array is None else array
    helper.append_op("write_to_array", {"X": [x], "I": [i]}, {"Out": [array]})
    return array


def array_read(array, i):
    """The tensor at position ``i``."""
    return single_op("read_from_array", {"X": array, "I": i}, layer="array_read")


def array_length(array):
    """How many tensors there are."""
    out = single_op("lod_array_length", {"X": array}, layer="array_length", dtype="int64")
    out.stop_gradient = True
    return out


def tensor_array_to_tensor(input, axis=1, name=None, use_stack=False):
    """(all tensors of an array concatenated, or stacked, along ``axis``; their sizes there, int32)."""
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    out = helper.create_variable_for_type_inference(helper.require(input, "input").dtype)
    sizes = helper.create_variable_for_type_inference("int32", stop_gradient=True)
    helper.append_op("tensor_array_to_tensor", {"X": [input]}, {"Out": [out], "OutIndex": [sizes]},
                     {"axis": axis, "use_stack": use_stack})
    return out, sizes
