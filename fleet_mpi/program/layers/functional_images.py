"""Borders, sizes, similarities and norms of images under their 2.x names (``paddle.nn.functional``)."""

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers import (
    activation,
    functional_lines,
    images,
    manipulation,
    nn,
    normalization,
    reduction,
    tensor,
)
from fleet_mpi.program.layers.math import clip, elementwise_div, elementwise_mul, pow, scale
from fleet_mpi.program.layers.single_op import single_op


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW",
                name=None):
    """Images of another size: ``size``, or ``scale_factor`` times theirs."""
    if isinstance(scale_factor, (list, tuple)) and len(set(scale_factor)) == 1:
        scale_factor = scale_factor[0]
    if isinstance(scale_factor, (list, tuple)) or mode.lower() == "area":
        size, scale_factor = _sizes(x, size, scale_factor, data_format), None
    if mode.lower() == "area":
        pool = {1: functional_lines.adaptive_avg_pool1d, 2: nn.adaptive_pool2d, 3: nn.adaptive_pool3d}[len(size)]
        return pool(x, size) if len(size) == 1 else pool(x, size, "avg", name=name, data_format=data_format)
    return images.image_resize(x, size, scale_factor, name, mode.upper(), None, align_corners, align_mode, data_format)


def _sizes(x, size, scale_factor, data_format):
    """The sizes asked for, in numbers; of a factor for each dimension, as many times the sizes of x."""
    old = x.shape[1:-1] if data_format.endswith("C") else x.shape[2:]
    if size is not None:
        return list(size) if isinstance(size, (list, tuple)) else [size] * len(old)
    factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * len(old)
    if len(factors) != len(old) or -1 in old or None in factors:
        raise UsageError(f"interpolate: expected size, or {len(old)} factors and a known size of {x.name!r} {x.shape}, "
                         f"got scale_factor {scale_factor!r}")
    return [int(one * factor) for one, factor in zip(old, factors)]


upsample = interpolate


def affine_grid(theta, out_shape, align_corners=True, name=None):
    """Where each pixel of images [N, C, H, W] lies in images that the affine maps ``theta`` move."""
    return images.affine_grid(theta, out_shape, name, align_corners)


def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    """Channels made pixels."""
    if data_format not in ("NCHW", "NHWC"):
        raise UsageError(f"pixel_shuffle: expected data_format NCHW or NHWC, got {data_format!r}")
    if data_format == "NCHW":
        return images.pixel_shuffle(x, upscale_factor, name)
    made = images.pixel_shuffle(manipulation.transpose(x, [0, 3, 1, 2]), upscale_factor)
    return manipulation.transpose(made, [0, 2, 3, 1], name)


def pad(x, pad, mode="constant", value=0.0, data_format="NCHW", name=None):
    """A border: two numbers for every dimension, or for the spatial ones from the last on (left, right, top, ...).

    A variable holds those of the spatial ones.
    """
    if isinstance(pad, Variable):
        return _bordered(x, pad, mode, value, data_format, name)
    pad, rank = [int(one) for one in pad], len(x.shape)
    if mode == "constant":
        return manipulation.pad(x, pad if len(pad) == 2 * rank else _in_order(x, pad, data_format), value, name)
    if mode not in ("reflect", "replicate", "circular") or rank not in (3, 4, 5) or len(pad) != 2 * (rank - 2):
        raise UsageError(f"pad: expected mode constant, reflect, replicate or circular and {max(2 * (rank - 2), 0)} "
                         f"numbers for {x.shape}, got {mode!r} and {pad}")
    last, flat = data_format.endswith("C"), rank < 5 and mode != "circular"
    missing = [1 if last else 2] * ((4 if flat else 5) - rank)
    for axis in missing:
        x = manipulation.unsqueeze(x, [axis])
    sides = pad + [0, 0] * len(missing)
    if flat:
        made = manipulation.pad2d(x, sides[2:] + sides[:2], {"replicate": "edge"}.get(mode, mode), name=name,
                                  data_format="NHWC" if last else "NCHW")
    else:
        made = single_op("pad3d", {"X": x}, {"paddings": sides, "mode": mode,
                                             "data_format": "NDHWC" if last else "NCDHW"}, name=name)
    for axis in missing:
        made = manipulation.squeeze(made, [axis])
    return made


def _bordered(x, pad, mode, value, data_format, name):
    """A border as wide as a variable says, around volumes: images and lines get the dimensions they lack."""
    last, missing = data_format.endswith("C"), 5 - len(x.shape)
    if missing:
        pad = manipulation.concat([pad, tensor.fill_constant([2 * missing], pad.dtype, 0)])
    for _ in range(missing):
        x = manipulation.unsqueeze(x, [1 if last else 2])
    made = single_op("pad3d", {"X": x, "Paddings": pad}, {"mode": mode, "value": float(value),
                                                          "data_format": "NDHWC" if last else "NCDHW"}, name=name)
    for _ in range(missing):
        made = manipulation.squeeze(made, [1 if last else 2])
    return made


def _in_order(x, pad, data_format):
    """Paddings from the last spatial dimension on, as pairs for every dimension from the first."""
    rank, count = len(x.shape), len(pad) // 2
    first = 1 if data_format.endswith("C") else 2
    if len(pad) % 2 or count > rank - 2:
        raise UsageError(f"pad: expected pairs for the {rank - 2} spatial dimensions of {x.shape}, or for all, got "
                         f"{pad}")
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
        return _norm_of_even(x, size, alpha, beta, k, data_format, name)
    return normalization.lrn(x, size, k, alpha / size, beta, name, data_format)


def _norm_of_even(x, size, alpha, beta, k, data_format, name):
    """The same for an even number of channels, one more before than behind: windows of a picture of all channels."""
    last = data_format.endswith("C")
    squares = manipulation.reshape(activation.square(x), [0, 1, -1, x.shape[-1]] if last else [0, 1, x.shape[1], -1])
    before, behind = [0, 0], [size // 2, (size - 1) // 2]
    means = nn.pool2d(squares, [1, size] if last else [size, 1], "avg", 1, [*before, *behind] if last else [
        *behind, *before], exclusive=False)
    base = manipulation.reshape(scale(means, alpha, k), tensor.shape(x))
    return elementwise_div(x, pow(base, beta), name=name)


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
