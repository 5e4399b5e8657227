"""Layers that rearrange variables: shapes, parts, pieces, order."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.variable_arguments import listed, number_given, numbers_given
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.single_op import single_op


def concat(input, axis=0, name=None):
    """Variables one behind the other along ``axis``, which may be a variable."""
    return _of_many("concat", input, *number_given(axis, "axis", "AxisTensor"), name=name)


def stack(x, axis=0, name=None):
    """Variables side by side along a new dimension ``axis``."""
    return _of_many("stack", x, {}, {"axis": axis}, out="Y", name=name)


def _of_many(type, input, more, attrs, out="Out", name=None):
    helper = LayerHelper(type, input=input, name=name)
    inputs = helper.multiple_input()
    made = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op(type, {"X": inputs, **more}, {out: [made]}, attrs)
    return made


def split(input, num_or_sections, dim=-1, name=None):
    """Pieces along ``dim``: so many equal ones, or of the given sizes (one may be -1); both may be variables."""
    inputs, attrs = number_given(dim, "axis", "AxisTensor")
    if isinstance(num_or_sections, int):
        return _into_many("split", input, num_or_sections, {**attrs, "num": num_or_sections, "sections": []}, "Out",
                          name, inputs)
    if not isinstance(num_or_sections, (list, tuple)):
        raise UsageError(f"split: expected a number of pieces or a list of their sizes, got {num_or_sections!r}")
    sizes, sections = numbers_given("split", num_or_sections, "", "SectionsTensorList")
    return _into_many("split", input, len(sections), {**attrs, "num": 0, "sections": sections}, "Out", name,
                      {**inputs, **sizes})


def unstack(x, axis=0, num=None):
    """The slices along ``axis``, without that dimension."""
    count = x.shape[axis] if num is None else num
    if count < 0:
        raise UsageError(f"unstack: dimension {axis} of {x.name!r} {x.shape} is known only at run time: give num")
    return _into_many("unstack", x, count, {"axis": axis, "num": count}, "Y")


def _into_many(type, input, count, attrs, slot, name=None, inputs=None):
    helper = LayerHelper(type, name=name)
    outs = [helper.create_variable_for_type_inference(helper.require(input, "input").dtype) for _ in range(count)]
    helper.append_op(type, {"X": [input], **(inputs or {})}, {slot: outs}, attrs)
    return outs


def _reshaped(type, x, attrs, inputs=None, act=None, name=None):
    """One of the ops that also name an output XShape."""
    helper = LayerHelper(type, act=act, name=name)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    xshape = helper.create_variable_for_type_inference(x.dtype, stop_gradient=True)
    helper.append_op(type, {"X": [x], **(inputs or {})}, {"Out": [out], "XShape": [xshape]}, attrs)
    return helper.append_activation(out)


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """Another shape; 0 keeps a size, one -1 takes the rest, variables are read at run time."""
    inputs, sizes = numbers_given("reshape2", shape, "Shape", "ShapeTensor")
    if actual_shape is not None:
        inputs = {"Shape": [actual_shape]}
    return _reshaped("reshape2", x, {"shape": sizes}, inputs, act, name)


def transpose(x, perm, name=None):
    """The dimensions in another order."""
    return _reshaped("transpose2", x, {"axis": listed(perm)}, name=name)


def squeeze(input, axes=(), name=None):
    """Without the dimensions of size 1 (those in ``axes``, or all)."""
    return _reshaped("squeeze2", input, {"axes": listed(axes)}, name=name)


def unsqueeze(input, axes, name=None):
    """With dimensions of size 1 put in at ``axes``, which may be or hold variables."""
    axes = axes if isinstance(axes, (Variable, list, tuple)) else listed(axes)
    inputs, axes = numbers_given("unsqueeze2", axes, "AxesTensor", "AxesTensorList")
    return _reshaped("unsqueeze2", input, {"axes": axes}, inputs, name=name)


def flatten(x, axis=1, name=None):
    """A matrix, the dimensions before ``axis`` being its rows."""
    return _reshaped("flatten2", x, {"axis": axis}, name=name)


def flatten_contiguous_range(x, start_axis=0, stop_axis=-1, name=None):
    """The dimensions from ``start_axis`` to ``stop_axis`` made one; ``paddle.flatten``."""
    return _reshaped("flatten_contiguous_range", x, {"start_axis": start_axis, "stop_axis": stop_axis}, name=name)


def slice(input, axes, starts, ends):
    """A part: from ``starts`` to ``ends`` along ``axes``; both may be or hold variables."""
    return _sliced("slice", input, axes, starts=starts, ends=ends)


def strided_slice(input, axes, starts, ends, strides):
    """A part, taking every so many elements; starts, ends and strides may be or hold variables."""
    return _sliced("strided_slice", input, axes, starts=starts, ends=ends, strides=strides)


def _sliced(type, input, axes, **limits):
    helper = LayerHelper(type, input=input)
    inputs, attrs = {"Input": [helper.input()]}, {"axes": listed(axes)}
    for name, given in limits.items():
        more, attrs[name] = numbers_given(type, given, f"{name.capitalize()}Tensor", f"{name.capitalize()}TensorList")
        inputs.update(more)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op(type, inputs, {"Out": [out]}, attrs)
    return out


def gather(input, index, overwrite=True):
    """The rows at the positions in ``index``."""
    return single_op("gather", {"X": input, "Index": index}, {"overwrite": overwrite})


def gather_axis(x, index, axis=None, name=None):
    """The slices along ``axis``, which may be a variable, at the positions in ``index``; ``paddle.gather``."""
    inputs, attrs = number_given(0 if axis is None else axis, "axis", "Axis")
    return single_op("gather", {"X": x, "Index": index, **inputs}, attrs, name=name)


def gather_nd(input, index, name=None):
    """The parts at the positions that the last dimension of ``index`` names."""
    return single_op("gather_nd", {"X": input, "Index": index}, name=name)


def scatter(input, index, updates, name=None, overwrite=True):
    """``input`` with the rows ``index`` replaced by ``updates``, or by their sums."""
    return single_op("scatter", {"X": input, "Ids": index, "Updates": updates}, {"overwrite": overwrite}, name=name)


def expand(x, expand_times, name=None):
    """Each dimension repeated."""
    inputs, times = numbers_given("expand", expand_times, "ExpandTimes", "expand_times_tensor")
    return _with_sizes("expand", x, inputs, {"expand_times": times}, name)


def tile(x, repeat_times, name=None):
    """Each dimension repeated, ones in front being added; ``paddle.tile``."""
    inputs, times = numbers_given("tile", repeat_times, "RepeatTimes", "repeat_times_tensor")
    return _with_sizes("tile", x, inputs, {"repeat_times": times}, name)


def expand_to(x, shape, name=None):
    """Stretched to ``shape``, -1 keeping a size; ``paddle.expand``."""
    inputs, sizes = numbers_given("expand_v2", shape, "Shape", "expand_shapes_tensor")
    return _with_sizes("expand_v2", x, inputs, {"shape": sizes}, name)


def _with_sizes(type, x, inputs, attrs, name):
    helper = LayerHelper(type, name=name)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    helper.append_op(type, {"X": [x], **inputs}, {"Out": [out]}, attrs)
    return out


def expand_as(x, target_tensor, name=None):
    """Repeated to the shape of another variable."""
    return single_op("expand_as", {"X": x, "target_tensor": target_tensor}, name=name)


def expand_as_v2(x, y, name=None):
    """Stretched to the shape of another variable; ``paddle.expand_as``."""
    return single_op("expand_as_v2", {"X": x, "Y": y}, name=name)


def pad(x, paddings, pad_value=0.0, name=None):
    """A value around ``x``: for each dimension, how much before and after."""
    return single_op("pad", {"X": x}, {"paddings": listed(paddings), "pad_value": float(pad_value)}, name=name)


def pad2d(input, paddings=(0, 0, 0, 0), mode="constant", pad_value=0.0, data_format="NCHW", name=None):
    """A border around images: top, bottom, left, right; a list, or a variable that holds them."""
    inputs, attrs = number_given(paddings, "paddings", "Paddings", listed)
    return single_op("pad2d", {"X": input, **inputs}, {**attrs, "mode": mode, "data_format": data_format,
                                                       "pad_value": float(pad_value)}, name=name)


def reverse(x, axis):
    """Back to front along ``axis`` (one or several)."""
    return single_op("reverse", {"X": x}, {"axis": listed(axis)})


def flip(x, axis, name=None):
    """Back to front along ``axis``; ``paddle.flip``."""
    return single_op("flip", {"X": x}, {"axis": listed(axis)}, name=name)


def one_hot(input, depth, allow_out_of_range=False):
    """[..., 1] ids as [..., depth] of ones and zeros; ``fluid.layers.one_hot``."""
    return _one_hot("one_hot", input, depth, allow_out_of_range)


def one_hot_v2(input, depth, allow_out_of_range=False):
    """[...] ids as [..., depth] of ones and zeros; ``fluid.one_hot``, ``paddle.nn.functional.one_hot``."""
    return _one_hot("one_hot_v2", input, depth, allow_out_of_range)


def _one_hot(type, input, depth, allow_out_of_range):
    inputs, attrs = number_given(depth, "depth", "depth_tensor")
    out = single_op(type, {"X": input, **inputs}, {**attrs, "allow_out_of_range": allow_out_of_range}, dtype="float32")
    out.stop_gradient = True
    return out


def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    """Ids of one shard counted from its start, all others ``ignore_value``."""
    return single_op("shard_index", {"X": input}, {"index_num": index_num, "nshards": nshards, "shard_id": shard_id,
                                                   "ignore_value": ignore_value})


def where(condition, x=None, y=None, name=None):
    """x where the condition holds, else y; without them the positions where it holds (``fluid.layers.where``)."""
    if x is None and y is None:
        return single_op("where_index", {"Condition": condition}, name=name, dtype="int64")
    return single_op("where", {"Condition": condition, "X": x, "Y": y}, name=name, dtype=x.dtype)


def unique(x, dtype="int32"):
    """(the distinct elements, for each element of ``x`` which one it is)."""
    helper = LayerHelper("unique")
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    index = helper.create_variable_for_type_inference(dtype)
    helper.append_op("unique", {"X": [x]}, {"Out": [out], "Index": [index]}, {"dtype": dtype})
    return out, index


def _sorted(type, x, attrs, inputs=None, name=None):
    """An op that gives elements and where they were."""
    helper = LayerHelper(type, name=name)
    out = helper.create_variable_for_type_inference(helper.require(x, "input").dtype)
    indices = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op(type, {"X": [x], **(inputs or {})}, {"Out": [out], "Indices": [indices]}, attrs)
    return out, indices


def argsort(input, axis=-1, descending=False, name=None):
    """(sorted elements, where they were)."""
    return _sorted("argsort", input, {"axis": axis, "descending": descending}, name=name)


def topk(input, k, name=None):
    """(the k largest of each row, where they were)."""
    inputs, attrs = number_given(k, "k", "K")
    return _sorted("top_k", input, attrs, inputs, name)


def topk_along(x, k, axis=None, largest=True, sorted=True, name=None):
    """(the k largest or smallest along ``axis``, where they were); ``paddle.topk``."""
    inputs, attrs = number_given(k, "k", "K")
    attrs = {"axis": -1 if axis is None else axis, "largest": largest, "sorted": sorted, **attrs}
    return _sorted("top_k_v2", x, attrs, inputs, name)


def argmax(x, axis=0):
    """The position of the largest element along ``axis``."""
    return single_op("arg_max", {"X": x}, {"axis": axis}, dtype="int64")


def argmin(x, axis=0):
    """The position of the smallest element along ``axis``."""
    return single_op("arg_min", {"X": x}, {"axis": axis}, dtype="int64")
