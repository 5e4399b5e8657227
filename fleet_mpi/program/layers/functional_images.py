"""Borders, sizes, similarities and norms of images under their 2.x names (``paddle.nn.functional``)."""

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.layers import activation, images, manipulation, normalization, reduction
from fleet_mpi.program.layers.math import clip, elementwise_div, elementwise_mul
from fleet_mpi.program.layers.single_op import single_op


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW",
                name=None):
    """Images of another size: ``size``, or ``scale_factor`` times theirs."""
    scale = scale_factor[0] if isinstance(scale_factor, (list, tuple)) and len(set(scale_factor)) == 1 else scale_factor
    if isinstance(scale, (list, tuple)):
        raise NotBuilt(f"interpolate: one scale_factor for all dimensions is built, got {scale_factor!r}; give size")
    return images.image_resize(x, size, scale, name, mode.upper(), None, align_corners, align_mode, data_format)


upsample = interpolate


def affine_grid(theta, out_shape, align_corners=True, name=None):
    """Where each pixel of images [N, C, H, W] lies in images that the affine maps ``theta`` move."""
    return images.affine_grid(theta, out_shape, name, align_corners)


def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    """Channels made pixels."""
    if data_format != "NCHW":
        raise NotBuilt(f"pixel_shuffle: data_format NCHW is built, got {data_format!r}; transpose first")
    return images.pixel_shuffle(x, upscale_factor, name)


def pad(x, pad, mode="constant", value=0.0, data_format="NCHW", name=None):
    """A border: two numbers for every dimension, or for the spatial ones from the last on (left, right, top, ...)."""
    pad, rank = [int(one) for one in pad], len(x.shape)
    if mode == "constant":
        return manipulation.pad(x, pad if len(pad) == 2 * rank else _in_order(x, pad, data_format), value, name)
    if mode == "circular" or rank not in (3, 4) or len(pad) != 2 * (rank - 2):
        raise NotBuilt(f"pad: mode {mode!r} is not built for {x.shape} and {pad}; constant is, and reflect and replicate "
                       f"of the last dimensions of lines and images")
    wide = manipulation.unsqueeze(x, [2]) if rank == 3 else x
    sides = [0, 0, *pad] if rank == 3 else [*pad[2:], *pad[:2]]
    made = manipulation.pad2d(wide, sides, {"replicate": "edge"}.get(mode, mode), name=name,
                              data_format="NHWC" if data_format == "NHWC" else "NCHW")
    return manipulation.squeeze(made, [2]) if rank == 3 else made


def _in_order(x, pad, data_format):
    """Paddings from the last spatial dimension on, as pairs for every dimension from the first."""
    rank, count = len(x.shape), len(pad) // 2
    first = 1 if data_format.endswith("C") else 2
    if len(pad) % 2 or count > rank - 2:
        raise UsageError(f"pad: expected pairs for the {rank - 2} spatial dimensions of {x.shape}, or for all, got {pad}")
    full = [0] * (2 * rank)
    for i in range(count):
        axis = first + rank - 3 - i
        full[2 * axis:2 * axis + 2] = pad[2 * i:2 * i + 2]
    return full


def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """The cosine of the angle between two variables along an axis."""
    product, one, two = (reduction.reduce_sum(elementwise_mul(a, b), axis) for a, b in ((x1, x2), (x1, x1), (x2, x2)))
    norm = activation.sqrt(clip(elementwise_mul(one, two), eps * eps, 3.4028234663852886e+38))
    return elementwise_div(product, norm)


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0, data_format="NCHW", name=None):
    """x / (k + alpha * the mean of squares of ``size`` neighbouring channels) ^ beta."""
    if size % 2 == 0:
        raise NotBuilt(f"local_response_norm: an odd size is built, got {size}")
    return normalization.lrn(x, size, k, alpha / size, beta, name, data_format)


def instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.9,
                  eps=1e-05, data_format="NCHW", name=None):
    """Each channel of each sample brought to mean 0 and variance 1, then scaled and shifted."""
    if not use_input_stats:
        raise NotBuilt("instance_norm: the statistics are those of each sample; use_input_stats=False is not built")
    return single_op("instance_norm", {"X": x, "Scale": weight, "Bias": bias}, {"epsilon": eps}, out="Y",
                     also=("SavedMean", "SavedVariance"), name=name)


def group_norm(x, num_groups, epsilon=1e-05, weight=None, bias=None, data_format="NCHW", name=None):
    """Each group of channels of a sample brought to mean 0 and variance 1, then scaled and shifted."""
    return single_op("group_norm", {"X": x, "Scale": weight, "Bias": bias},
                     {"groups": num_groups, "epsilon": epsilon, "data_layout": data_format}, out="Y",
                     also=("Mean", "Variance"), name=name)


def bilinear(x1, x2, weight, bias=None, name=None):
    """x1 W_i x2 + b_i for each matrix of ``weight`` [outputs, in, in]."""
    return single_op("bilinear_tensor_product", {"X": x1, "Y": x2, "Weight": weight, "Bias": bias}, name=name)
