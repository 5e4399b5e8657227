"""Layers that pick, place or compare parts: crops, scattered additions, masks, triangles, rows."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.variable_arguments import numbers_given
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.layers.tensor import fill_constant


def multiplex(inputs, index, name=None):
    """Row i of the input that ``index[i]`` names, for each i."""
    helper = LayerHelper("multiplex", input=inputs, name=name)
    given = helper.multiple_input()
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op("multiplex", {"X": given, "Ids": [helper.require(index, "index")]}, {"Out": [out]})
    return out


def pad_constant_like(x, y, pad_value=0.0, name=None):
    """y with a value behind it along each dimension, up to the shape of x."""
    return single_op("pad_constant_like", {"X": x, "Y": y}, {"pad_value": float(pad_value)}, name=name)


def crop(x, shape=None, offsets=None, name=None):
    """The part of x that begins at ``offsets``; ``shape``: its sizes, or a variable of just that shape."""
    attrs = {} if shape is None or isinstance(shape, Variable) else {"shape": [int(size) for size in shape]}
    if offsets is not None and not isinstance(offsets, Variable):
        attrs["offsets"] = [int(one) for one in offsets]
    return single_op("crop", {"X": x, "Y": shape if isinstance(shape, Variable) else None,
                              "Offsets": offsets if isinstance(offsets, Variable) else None}, attrs, name=name)


def crop_tensor(x, shape=None, offsets=None, name=None):
    """The part of x of a shape, from ``offsets`` on; both may be or hold variables, -1 in the shape is the rest."""
    helper = LayerHelper("crop_tensor", name=name)
    shape, offsets = x.shape if shape is None else shape, [0] * len(x.shape) if offsets is None else offsets
    shape_inputs, sizes = numbers_given("crop_tensor", shape, "Shape", "ShapeTensor")
    offset_inputs, starts = numbers_given("crop_tensor", offsets, "Offsets", "OffsetsTensor")
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    helper.append_op("crop_tensor", {"X": [x], **shape_inputs, **offset_inputs}, {"Out": [out]},
                     {"shape": sizes, "offsets": starts})
    return out


def scatter_nd_add(ref, index, updates, name=None):
    """``ref`` with ``updates`` added at the positions that the last dimension of ``index`` names."""
    return single_op("scatter_nd_add", {"X": ref, "Index": index, "Updates": updates}, name=name)


def scatter_nd(index, updates, shape, name=None):
    """Zeros of a shape, with ``updates`` added at the positions that ``index`` names."""
    return scatter_nd_add(fill_constant(shape, updates.dtype, 0.0), index, updates, name)


def tril(x, diagonal=0, name=None):
    """Matrices with zeros above a diagonal."""
    return single_op("tril_triu", {"X": x}, {"diagonal": int(diagonal), "lower": True}, name=name, layer="tril")


def triu(x, diagonal=0, name=None):
    """Matrices with zeros below a diagonal."""
    return single_op("tril_triu", {"X": x}, {"diagonal": int(diagonal), "lower": False}, name=name, layer="triu")


def meshgrid(input, name=None):
    """Each variable of a list spread over the grid that all of them span."""
    helper = LayerHelper("meshgrid", input=input, name=name)
    given = helper.multiple_input()
    outs = [helper.create_variable_for_type_inference(one.dtype) for one in given]
    helper.append_op("meshgrid", {"X": given}, {"Out": outs})
    return outs


def masked_select(x, mask, name=None):
    """The elements of x where the mask is true, in a row."""
    return single_op("masked_select", {"X": x, "Mask": mask}, out="Y", name=name)


def unique_sorted(x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64",
                  name=None):
    """The distinct elements in ascending order, and what else is asked for; ``paddle.unique``."""
    helper = LayerHelper("unique_sorted", name=name)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    wanted = [slot for slot, asked in (("Indices", return_index), ("Index", return_inverse), ("Counts", return_counts))
              if asked]
    others = [helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in wanted]
    helper.append_op("unique_sorted", {"X": [x]}, {"Out": [out], **{slot: [one] for slot, one in zip(wanted, others)}},
                     {"axis": axis, "dtype": str(getattr(dtype, "value", dtype))})
    return (out, *others) if others else out


def unique_with_counts(x, dtype="int32"):
    """(the distinct elements in order of first occurrence, for each element which one it is, how often each occurs)."""
    helper = LayerHelper("unique_with_counts")
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    index, count = (helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(2))
    helper.append_op("unique_with_counts", {"X": [x]}, {"Out": [out], "Index": [index], "Count": [count]},
                     {"dtype": str(getattr(dtype, "value", dtype))})
    return out, index, count


def index_sample(x, index):
    """From each row of x the elements at the positions in the same row of ``index``."""
    return single_op("index_sample", {"X": x, "Index": index})


def bernoulli(x, name=None):
    """1 with the probability that x gives, else 0; drawn anew at every run."""
    out = single_op("bernoulli", {"X": x}, name=name)
    out.stop_gradient = True
    return out


def multinomial(x, num_samples=1, replacement=False, name=None, seed=0):
    """Classes drawn by probabilities, which need not sum to one."""
    out = single_op("multinomial", {"X": x}, {"num_samples": num_samples, "replacement": replacement, "seed": seed},
                    name=name, dtype="int64")
    out.stop_gradient = True
    return out


def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """Whether |x - y| <= atol + rtol |y| everywhere, as one bool."""
    return single_op("allclose", {"Input": x, "Other": y}, {"rtol": float(rtol), "atol": float(atol),
                                                            "equal_nan": equal_nan}, name=name, dtype="bool")


def merge_selected_rows(x, name=None):
    """A row gradient with the rows of equal ids summed."""
    return single_op("merge_selected_rows", {"X": x}, name=name)


def get_tensor_from_selected_rows(x, name=None):
    """The values of a row gradient as a tensor, one row for each id."""
    return single_op("get_tensor_from_selected_rows", {"X": x}, name=name)


def rank(input):
    """How many dimensions, as a variable."""
    return fill_constant([1], "int32", len(input.shape))
