"""Layers over images: patches, sampling, resizing, channels moved about."""

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.build.initializers import Normal
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.variable_arguments import numbers_given
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.nn import per_dimension
from fleet_mpi.program.layers.single_op import single_op


def maxout(x, groups, name=None, axis=1):
    """The largest of each ``groups`` neighbouring channels."""
    return single_op("maxout", {"X": x}, {"groups": groups, "axis": axis}, name=name)


def space_to_depth(x, blocksize, name=None):
    """Pixels made channels: [N, C, H, W] as [N, C b^2, H / b, W / b]."""
    return single_op("space_to_depth", {"X": x}, {"blocksize": blocksize}, name=name)


def shuffle_channel(x, group, name=None):
    """Channels dealt out in turn from ``group`` groups."""
    return single_op("shuffle_channel", {"X": x}, {"group": group}, name=name)


def pixel_shuffle(x, upscale_factor, name=None):
    """Channels made pixels: [N, C r^2, H, W] as [N, C, H r, W r]."""
    return single_op("pixel_shuffle", {"X": x}, {"upscale_factor": upscale_factor}, name=name)


def temporal_shift(x, seg_num, shift_ratio=0.25, name=None):
    """[N * seg_num, C, H, W] with some channels from the step before, as many from the step after."""
    return single_op("temporal_shift", {"X": x}, {"seg_num": seg_num, "shift_ratio": shift_ratio}, name=name)


def affine_grid(theta, out_shape, name=None, align_corners=True):
    """Where each pixel of images [N, C, H, W] lies in images that the affine maps ``theta`` [N, 2, 3] move."""
    attrs = {"align_corners": align_corners}
    if isinstance(out_shape, Variable):
        return single_op("affine_grid", {"Theta": theta, "OutputShape": out_shape}, attrs, out="Output", name=name)
    attrs["output_shape"] = [int(size) for size in out_shape]
    return single_op("affine_grid", {"Theta": theta}, attrs, out="Output", name=name)


def grid_sampler(x, grid, name=None):
    """Images read at the places that ``grid`` [N, H, W, 2] names; -1 and 1 are the centres of the outermost pixels."""
    return single_op("grid_sampler", {"X": x, "Grid": grid}, out="Output", name=name)


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True, name=None):
    """As grid_sampler, with a choice of what lies between pixels and outside; ``paddle.nn.functional``."""
    return single_op("grid_sampler", {"X": x, "Grid": grid}, {
        "mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}, out="Output", name=name)


def im2sequence(input, filter_size=1, stride=1, padding=0, input_image_size=None, out_stride=1, name=None):
    """The patches of each image as the rows of a sequence."""
    if input_image_size is not None:
        raise NotBuilt("im2sequence: input_image_size is not supported; all images of a batch have one size here")
    return single_op("im2sequence", {"X": input}, {
        "kernels": per_dimension(filter_size, 2, "im2sequence: filter_size"),
        "strides": per_dimension(stride, 2, "im2sequence: stride"), "paddings": four_sides(padding, "im2sequence")},
        name=name)


def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """The patches of each image as columns: [N, channels * patch size, number of patches]."""
    return single_op("unfold", {"X": x}, {
        "kernel_sizes": per_dimension(kernel_sizes, 2, "unfold: kernel_sizes"),
        "strides": per_dimension(strides, 2, "unfold: strides"), "paddings": four_sides(paddings, "unfold"),
        "dilations": per_dimension(dilations, 2, "unfold: dilations")}, out="Y", name=name)


def four_sides(padding, layer):
    """[up, left, down, right] from one number, two or four."""
    values = [padding] if isinstance(padding, int) else list(padding)
    if len(values) not in (1, 2, 4):
        raise UsageError(f"{layer}: expected 1, 2 or 4 paddings, got {padding!r}")
    return values * (4 // len(values))


def random_crop(x, shape, seed=None):
    """Of each sample a part of this shape, at a place drawn anew for each sample and run."""
    if isinstance(seed, Variable):
        raise NotBuilt("random_crop: a seed that is a variable is not supported; give a number")
    out = single_op("random_crop", {"X": x}, {"shape": [int(size) for size in shape], "seed": seed or 0})
    out.stop_gradient = True
    return out


METHODS = {"LINEAR": "linear_interp", "BILINEAR": "bilinear_interp", "TRILINEAR": "trilinear_interp",
           "NEAREST": "nearest_interp", "BICUBIC": "bicubic_interp"}


def image_resize(input, out_shape=None, scale=None, name=None, resample="BILINEAR", actual_shape=None,
                 align_corners=True, align_mode=1, data_format="NCHW"):
    """Images of another size: ``out_shape``, or ``scale`` times theirs; either may be a variable."""
    if str(resample).upper() not in METHODS:
        raise NotBuilt(f"image_resize: expected resample {', '.join(METHODS)}, got {resample!r}")
    if (out_shape is None) == (scale is None) and actual_shape is None:
        raise UsageError("image_resize: expected out_shape or scale")
    helper = LayerHelper("image_resize", name=name)
    inputs, attrs = _size_of(input, out_shape, scale, actual_shape)
    out = helper.create_variable_for_type_inference(helper.require(input, "input").dtype)
    helper.append_op(METHODS[resample.upper()], {"X": [input], **inputs}, {"Out": [out]}, {
        **attrs, "align_corners": align_corners, "align_mode": align_mode, "interp_method": resample.lower(),
        "data_layout": "NHWC" if data_format.endswith("C") else "NCHW"})
    return out


def _size_of(input, out_shape, scale, actual_shape):
    """(inputs, attributes) that tell the size."""
    if actual_shape is not None or isinstance(out_shape, Variable):
        return {"OutSize": [out_shape if actual_shape is None else actual_shape]}, {}
    if isinstance(scale, Variable):
        return {"Scale": [scale]}, {}
    if scale is not None:
        return {}, {"scale": float(scale)}
    inputs, sizes = numbers_given("image_resize", out_shape, "OutSize", "SizeTensor")
    if len(sizes) != len(input.shape) - 2:
        raise UsageError(f"image_resize: expected {len(input.shape) - 2} sizes for {input.name!r} {input.shape}, got "
                         f"{sizes}")
    return inputs, dict(zip(("out_d", "out_h", "out_w")[-len(sizes):], sizes))


def resize_bilinear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                    data_format="NCHW"):
    """Images of another size by linear interpolation."""
    return image_resize(input, out_shape, scale, name, "BILINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_trilinear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                     data_format="NCDHW"):
    """Volumes of another size by linear interpolation."""
    return image_resize(input, out_shape, scale, name, "TRILINEAR", actual_shape, align_corners, align_mode,
                        data_format)


def resize_linear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                  data_format="NCW"):
    """Lines of another length by linear interpolation."""
    return image_resize(input, out_shape, scale, name, "LINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_nearest(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True,
                   data_format="NCHW"):
    """Images of another size, each pixel from the nearest one."""
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def image_resize_short(input, out_short_len, resample="BILINEAR"):
    """Images [N, C, H, W] whose shorter side becomes ``out_short_len``, in proportion."""
    sizes = list(input.shape[2:4])
    if len(input.shape) != 4 or -1 in sizes:
        raise UsageError(f"image_resize_short: expected images [N, C, H, W] of known size, got {input.shape}")
    factor = out_short_len / float(min(sizes))
    short = sizes.index(min(sizes))
    wanted = [out_short_len if i == short else int(size * factor + 0.5) for i, size in enumerate(sizes)]
    return image_resize(input, wanted, resample=resample)


def deformable_conv(input, offset, mask, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None,
                    deformable_groups=None, im2col_step=None, param_attr=None, bias_attr=None, modulated=True,
                    name=None):
    """A convolution that reads where ``offset`` says, with the weights of ``mask`` (``modulated``), plus a bias."""
    helper = LayerHelper("deformable_conv", param_attr=param_attr, bias_attr=bias_attr, name=name)
    channels, groups = helper.require(input, "input").shape[1], groups or 1
    window = per_dimension(filter_size, 2, "deformable_conv: filter_size")
    weight = helper.create_parameter(helper.param_attr, [num_filters, channels // groups] + window, input.dtype,
                                     default_initializer=Normal(0.0, (2.0 / (window[0] * window[1] * channels)) ** 0.5))
    inputs = {"Input": [input], "Offset": [helper.require(offset, "offset")], "Filter": [weight]}
    if modulated:
        inputs["Mask"] = [helper.require(mask, "mask")]
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("deformable_conv" if modulated else "deformable_conv_v1", inputs, {"Output": [out]}, {
        **{f"{what}s": per_dimension(given, 2, f"deformable_conv: {what}") for what, given in (
            ("stride", stride), ("padding", padding), ("dilation", dilation))},
        "groups": groups, "deformable_groups": deformable_groups or 1, "im2col_step": im2col_step or 64})
    return helper.append_bias_op(out, dim_start=1, dim_end=2)


def deform_conv2d(x, offset, mask, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=1,
                  deformable_groups=1, im2col_step=1, weight_attr=None, bias_attr=None, name=None):
    """``deformable_conv`` with the argument list of 2.x: modulated where a mask is given."""
    return deformable_conv(x, offset, mask, num_filters, filter_size, stride, padding, dilation, groups,
                           deformable_groups, im2col_step, weight_attr, bias_attr, mask is not None, name)


def similarity_focus(input, axis, indexes, name=None):
    """1 at the places of the largest elements, no two in one row or column, of the slices ``indexes`` along
    ``axis``."""
    return single_op("similarity_focus", {"X": input}, {"axis": axis, "indexes": [int(one) for one in indexes]},
                     name=name)
