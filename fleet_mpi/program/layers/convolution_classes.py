"""Convolutions of lines, images and volumes as layer classes of ``paddle.nn``, and their transposes."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Normal
from fleet_mpi.program.layers import functional_images, functional_lines, functional_nn, functional_volumes, nn
from fleet_mpi.program.layers.layer import Layer

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Layer):
    """Convolution with ``out_channels`` filters; the weight is [out, in / groups, sizes of the window]."""

    rank = function = None

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                 weight_attr, bias_attr, data_format):
        super().__init__()
        name = type(self).__name__
        if in_channels % groups:
            raise UsageError(f"{name}: expected in_channels to be a multiple of groups, got {in_channels} and {groups}")
        window = nn.per_dimension(kernel_size, self.rank, f"{name}: kernel_size")
        self.weight = self.create_parameter(
            [out_channels, in_channels // groups] + window, weight_attr,
            default_initializer=Normal(0.0, math.sqrt(2.0 / (math.prod(window) * in_channels))))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)
        self._border = _border(name, padding, self.rank, padding_mode, data_format)
        self._arguments = (stride, 0 if self._border else padding, dilation, groups, data_format)

    def forward(self, x):
        """The filtered channels; a border other than zeros is put around the input first."""
        if self._border:
            x = functional_images.pad(x, *self._border, data_format=self._arguments[-1])
        return type(self).function(x, self.weight, self.bias, *self._arguments)


def _border(name, padding, rank, mode, data_format):
    """(two numbers for each dimension, the last one first; mode), or None for zeros, which the convolution adds."""
    if mode not in PADDING_MODES:
        raise UsageError(f"{name}: expected padding_mode {', '.join(PADDING_MODES)}, got {mode!r}")
    if mode == "zeros":
        return None
    if isinstance(padding, str):
        raise UsageError(f"{name}: padding_mode {mode!r} needs padding in numbers, got {padding!r}")
    numbers, _ = nn.paddings_of(padding, rank, data_format, f"{name}: padding")
    pairs = [numbers[i:i + 2] for i in range(0, 2 * rank, 2)] if len(numbers) == 2 * rank else [
        [one, one] for one in numbers]
    return [end for pair in reversed(pairs) for end in pair], mode


class Conv1D(_Convolution):
    """Convolution of lines."""

    rank, function = 1, staticmethod(functional_lines.conv1d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCL"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class Conv2D(_Convolution):
    """Convolution of images."""

    rank, function = 2, staticmethod(functional_nn.conv2d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class Conv3D(_Convolution):
    """Convolution of volumes."""

    rank, function = 3, staticmethod(functional_volumes.conv3d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class _Transposed(Layer):
    """The transpose of a convolution; the weight is [in, out / groups, sizes of the window]."""

    rank = function = None

    def __init__(self, in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, **settings):
        super().__init__()
        window = nn.per_dimension(kernel_size, self.rank, f"{type(self).__name__}: kernel_size")
        self.weight = self.create_parameter([in_channels, out_channels // groups] + window, weight_attr)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)
        self._settings = dict(settings, groups=groups)

    def forward(self, x, output_size=None):
        """Larger data."""
        return type(self).function(x, self.weight, self.bias, output_size=output_size, **self._settings)


class Conv1DTranspose(_Transposed):
    """The transposed convolution of lines."""

    rank, function = 1, staticmethod(functional_lines.conv1d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 dilation=1, weight_attr=None, bias_attr=None, data_format="NCL"):
        super().__init__(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, stride=stride,
                         padding=padding, output_padding=output_padding, dilation=dilation, data_format=data_format)


class Conv2DTranspose(_Transposed):
    """The transposed convolution of images."""

    rank, function = 2, staticmethod(functional_nn.conv2d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1, weight_attr=None, bias_attr=None, data_format="NCHW"):
        super().__init__(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, stride=stride,
                         padding=padding, output_padding=output_padding, dilation=dilation, data_format=data_format)


class Conv3DTranspose(_Transposed):
    """The transposed convolution of volumes."""

    rank, function = 3, staticmethod(functional_volumes.conv3d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1, weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, stride=stride,
                         padding=padding, output_padding=output_padding, dilation=dilation, data_format=data_format)
