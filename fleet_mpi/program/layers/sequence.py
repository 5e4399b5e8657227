"""Layers over sequences: inputs with a LoD, fed from variables declared with ``lod_level=1`` or more."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.graph.variable import Variable


def _append(type, inputs, attrs=None, name=None, out="Out", dtype=None):
    """Add an op with one output and return that; its element type is the first input's unless told."""
    helper = LayerHelper(type, name=name)
    first = next(iter(inputs.values()))[0]
    made = helper.create_variable_for_type_inference(dtype or first.dtype)
    helper.append_op(type, inputs, {out: [made]}, attrs or {})
    return made


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):
    """One row per sequence: its sum, average, sqrt (sum / sqrt(length)), max, first or last.

    An empty sequence gives ``pad_value``.
    """
    helper = LayerHelper("sequence_pool")
    out = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference("int32", stop_gradient=True)
    helper.append_op("sequence_pool", {"X": [input]}, {"Out": [out], "MaxIndex": [index]},
                     {"pooltype": str(pool_type).upper(), "is_test": is_test, "pad_value": pad_value})
    return out


def sequence_first_step(input):
    """The first row of each sequence."""
    return sequence_pool(input, "first")


def sequence_last_step(input):
    """The last row of each sequence."""
    return sequence_pool(input, "last")


def sequence_softmax(input, use_cudnn=False, name=None):
    """Softmax over the numbers of each sequence; ``use_cudnn`` has no effect."""
    return _append("sequence_softmax", {"X": [input]}, name=name)


def row_conv(input, future_context_size, param_attr=None, act=None):
    """act of each row plus ``future_context_size`` rows behind it, each times learned weights, within each sequence.

    ``input`` is [rows, width] with a LoD, or [sequences, steps, width].
    """
    helper = LayerHelper("row_conv", input=input, param_attr=param_attr, act=act)
    weight = helper.create_parameter(helper.param_attr, [future_context_size + 1, input.shape[-1]], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("row_conv", {"X": [helper.input()], "Filter": [weight]}, {"Out": [out]})
    return helper.append_activation(out)


def sequence_conv(input, num_filters, filter_size=3, filter_stride=1, padding=True, padding_start=None,
                  bias_attr=None, param_attr=None, act=None, name=None):
    """act(each row with its neighbours times a filter + bias); zeros stand where the sequence ends.

    The window starts ``padding_start`` rows from each row, by default half of ``filter_size`` before it.
    ``padding`` has no effect: the output always has as many rows as the input, as in the original.
    """
    helper = LayerHelper("sequence_conv", bias_attr=bias_attr, param_attr=param_attr, act=act, name=name)
    filter = helper.create_parameter(helper.param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    start = -int(filter_size // 2) if padding_start is None else padding_start
    helper.append_op("sequence_conv", {"X": [input], "Filter": [filter]}, {"Out": [out]},
                     {"contextStride": filter_stride, "contextStart": start, "contextLength": filter_size})
    return helper.append_activation(helper.append_bias_op(out))


def sequence_expand(x, y, ref_level=-1, name=None):
    """Each sequence (or row) of ``x`` as often as level ``ref_level`` of ``y`` says; -1 is the last level."""
    return _append("sequence_expand", {"X": [x], "Y": [y]}, {"ref_level": ref_level}, name)


def sequence_expand_as(x, y, name=None):
    """Row i of ``x`` as often as sequence i of ``y`` has rows."""
    return _append("sequence_expand_as", {"X": [x], "Y": [y]}, name=name)


def sequence_concat(input, name=None):
    """The i-th sequences of all inputs, one behind the other."""
    return _append("sequence_concat", {"X": list(input)}, name=name)


def sequence_slice(input, offset, length, name=None):
    """Of sequence i the ``length[i]`` rows from ``offset[i]`` on; both are variables of integers."""
    return _append("sequence_slice", {"X": [input], "Offset": [offset], "Length": [length]}, name=name)


def sequence_reverse(x, name=None):
    """Each sequence from last row to first."""
    return _append("sequence_reverse", {"X": [x]}, name=name, out="Y")


def sequence_reshape(input, new_dim):
    """Each sequence's numbers as rows of ``new_dim`` columns."""
    return _append("sequence_reshape", {"X": [input]}, {"new_dim": new_dim})


def sequence_pad(x, pad_value, maxlen=None, name=None):
    """(sequences filled up with the variable ``pad_value`` to ``maxlen`` or the longest, their lengths)."""
    helper = LayerHelper("sequence_pad", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    length = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("sequence_pad", {"X": [x], "PadValue": [pad_value]}, {"Out": [out], "Length": [length]},
                     {"padded_length": -1 if maxlen is None else maxlen})
    return out, length


def sequence_unpad(x, length, name=None):
    """The first ``length[i]`` rows of x[i], as sequences."""
    return _append("sequence_unpad", {"X": [x], "Length": [length]}, name=name)


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """1 at the first x[...] places of a new last dimension, else 0; ``maxlen`` (number or variable) long."""
    inputs, attrs = {"X": [x]}, {"out_dtype": as_dtype(dtype).name}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = [maxlen]
    else:
        attrs["maxlen"] = -1 if maxlen is None else int(maxlen)
    out = _append("sequence_mask", inputs, attrs, name, out="Y", dtype=dtype)
    out.stop_gradient = True
    return out


def sequence_enumerate(input, win_size, pad_value=0, name=None):
    """Each id with the ``win_size`` - 1 behind it in its sequence."""
    return _append("sequence_enumerate", {"X": [input]}, {"win_size": win_size, "pad_value": pad_value}, name)


def sequence_scatter(input, index, updates, name=None):
    """``input`` with sequence i of ``updates`` added to row i, at the columns that ``index`` says."""
    return _append("sequence_scatter", {"X": [input], "Ids": [index], "Updates": [updates]}, name=name)


def lod_reset(x, y=None, target_lod=None):
    """``x`` with the LoD of ``y`` (or its values as one level), or with the level ``target_lod``."""
    if y is None and target_lod is None:
        raise UsageError("lod_reset: expected y or target_lod, got neither")
    if y is not None:
        return _append("lod_reset", {"X": [x], "Y": [y]})
    return _append("lod_reset", {"X": [x]}, {"target_lod": [int(one) for one in target_lod]})


def lod_append(x, level):
    """``x`` with one more level below those it has: a list, or a variable with a LoD or values."""
    if isinstance(level, Variable):
        return _append("lod_reset", {"X": [x], "Y": [level]}, {"append": True})
    return _append("lod_reset", {"X": [x]}, {"target_lod": [int(one) for one in level], "append": True})
