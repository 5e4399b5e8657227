"""Convolution and pooling of lines [N, C, L] (``paddle.nn.functional``): images that are one pixel high."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers import functional_nn, nn
from fleet_mpi.program.layers.manipulation import squeeze, unsqueeze


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCL", name=None):
    """``x`` convolved with ``weight`` [filters, channels / groups, length], plus a bias per filter."""
    axis = 1 if _is_last(data_format) else 2
    made = functional_nn.conv2d(
        unsqueeze(x, [axis]), unsqueeze(weight, [2]), bias, [1, *_one(stride, "stride")], _beside(padding),
        [1, *_one(dilation, "dilation")], groups, "NHWC" if axis == 1 else "NCHW", name)
    return squeeze(made, [axis])


def conv1d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
                     output_size=None,
                     data_format="NCL", name=None):
    """The transpose of conv1d; ``weight`` is [channels, filters / groups, length]."""
    axis = 1 if _is_last(data_format) else 2
    size = None if output_size is None else [1, *_one(output_size, "output_size")]
    made = functional_nn.conv2d_transpose(
        unsqueeze(x, [axis]), unsqueeze(weight, [2]), bias, [1, *_one(stride, "stride")], _beside(padding),
        [0, *_one(output_padding, "output_padding")], groups, [1, *_one(dilation, "dilation")],
        "NHWC" if axis == 1 else "NCHW", size, name)
    return squeeze(made, [axis])


def max_pool1d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None):
    """The maximum of windows, one behind the other unless a stride is given; ``return_mask``: its place too."""
    return _lines(_pooled(x, "max", kernel_size, stride, padding, ceil_mode, True, name), return_mask)


def avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None):
    """The mean of windows, one behind the other unless a stride is given."""
    return _lines(_pooled(x, "avg", kernel_size, stride, padding, ceil_mode, exclusive, name))


def adaptive_avg_pool1d(x, output_size, name=None):
    """The mean of ``output_size`` windows that cover the data evenly."""
    return squeeze(nn.adaptive_pool2d(unsqueeze(x, [2]), [1, *_one(output_size, "output_size")], "avg", name=name), [2])


def adaptive_max_pool1d(x, output_size, return_mask=False, name=None):
    """The maximum of ``output_size`` windows that cover the data evenly; ``return_mask``: its place too."""
    made = nn.adaptive_pool2d(unsqueeze(x, [2]), [1, *_one(output_size, "output_size")], "max", name=name)
    return _lines(made, return_mask)


def _pooled(x, kind, size, stride, padding, ceil_mode, exclusive, name):
    size = _one(size, "kernel_size")
    step = size if stride is None else _one(stride, "stride")
    return nn.pool2d(unsqueeze(x, [2]), [1, *size], kind, [1, *step], _beside(padding), ceil_mode=ceil_mode, name=name,
                     exclusive=exclusive)


def _lines(pooled, with_places=False):
    """The pool without its height of 1, perhaps with the places of the maxima."""
    if not with_places:
        return squeeze(pooled, [2])
    return tuple(squeeze(one, [2]) for one in nn.with_mask(pooled))


def _one(given, what):
    """A list of one number."""
    values = [given] if isinstance(given, int) else list(given)
    if len(values) != 1:
        raise UsageError(f"expected one number as {what} of a line, got {given!r}")
    return values


def _beside(padding):
    """The padding of a line as that of an image: none above and below."""
    if isinstance(padding, str):
        return padding
    values = [padding] if isinstance(padding, int) else list(padding)
    if len(values) not in (1, 2):
        raise UsageError(f"expected one padding of a line, or one for each end, got {padding!r}")
    return [0, 0, values[0], values[-1]]


def _is_last(data_format):
    if data_format not in ("NCL", "NLC"):
        raise UsageError(f"conv1d: expected data_format NCL or NLC, got {data_format!r}")
    return data_format == "NLC"
