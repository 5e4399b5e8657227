"""Volumes as layer classes of ``paddle.nn``: convolutions, pools, borders; and the transposed convolution of lines."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Normal
from fleet_mpi.program.layers import functional_images, functional_lines, functional_volumes, nn
from fleet_mpi.program.layers.classes import OfArguments
from fleet_mpi.program.layers.layer import Layer


class Conv3D(Layer):
    """Convolution of volumes with ``out_channels`` filters; the weight is [out, in / groups, d, h, w]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__()
        if in_channels % groups:
            raise UsageError(f"Conv3D: in_channels {in_channels} must be a multiple of groups {groups}")
        window = nn.per_dimension(kernel_size, 3, "Conv3D: kernel_size")
        self.weight = self.create_parameter(
            [out_channels, in_channels // groups] + window, weight_attr,
            default_initializer=Normal(0.0, math.sqrt(2.0 / (math.prod(window) * in_channels))))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)
        self._border = None if padding_mode == "zeros" else (_border(padding), padding_mode)
        self._arguments = (stride, 0 if self._border else padding, dilation, groups, data_format)

    def forward(self, x):
        """The filtered channels; a border other than zeros is put around the volume first."""
        if self._border is not None:
            x = functional_images.pad(x, *self._border, data_format=self._arguments[-1])
        return functional_volumes.conv3d(x, self.weight, self.bias, *self._arguments)


def _border(padding):
    """[left, right, top, bottom, front, back] of paddings by dimension, depth first."""
    if isinstance(padding, str):
        raise UsageError(f"Conv3D: a padding_mode other than 'zeros' needs padding in numbers, got {padding!r}")
    depth, height, width = nn.per_dimension(padding, 3, "Conv3D: padding")
    return [width, width, height, height, depth, depth]


class _Transposed(Layer):
    """The transpose of a convolution; the weight is [in, out / groups, ...]."""

    rank = function = None

    def _make(self, in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr):
        window = nn.per_dimension(kernel_size, self.rank, f"{type(self).__name__}: kernel_size")
        self.weight = self.create_parameter([in_channels, out_channels // groups] + window, weight_attr)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x, output_size=None):
        """Larger data."""
        return type(self).function(x, self.weight, self.bias, output_size=output_size, **self._settings)


class Conv1DTranspose(_Transposed):
    """The transposed convolution of lines."""

    rank, function = 1, staticmethod(functional_lines.conv1d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 dilation=1,
                 weight_attr=None, bias_attr=None, data_format="NCL"):
        super().__init__()
        self._make(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr)
        self._settings = dict(stride=stride, padding=padding, output_padding=output_padding, groups=groups,
                              dilation=dilation, data_format=data_format)


class Conv3DTranspose(_Transposed):
    """The transposed convolution of volumes."""

    rank, function = 3, staticmethod(functional_volumes.conv3d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1,
                 weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__()
        self._make(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr)
        self._settings = dict(stride=stride, padding=padding, output_padding=output_padding, groups=groups,
                              dilation=dilation, data_format=data_format)


class MaxPool3D(OfArguments):
    """The maximum of windows of volumes."""

    function = staticmethod(functional_volumes.max_pool3d)

    def __init__(self, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW",
                 name=None):
        super().__init__(kernel_size, stride, padding, return_mask, ceil_mode, data_format, name)


class AvgPool3D(OfArguments):
    """The mean of windows of volumes."""

    function = staticmethod(functional_volumes.avg_pool3d)

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
                 data_format="NCDHW", name=None):
        super().__init__(kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format, name)


class AdaptiveAvgPool3D(OfArguments):
    """The mean of ``output_size`` windows that cover volumes evenly."""

    function = staticmethod(functional_volumes.adaptive_avg_pool3d)

    def __init__(self, output_size, data_format="NCDHW", name=None):
        super().__init__(output_size, data_format, name)


class AdaptiveMaxPool3D(OfArguments):
    """The maximum of ``output_size`` windows that cover volumes evenly."""

    function = staticmethod(functional_volumes.adaptive_max_pool3d)

    def __init__(self, output_size, return_mask=False, name=None):
        super().__init__(output_size, return_mask, name)


class Pad3D(OfArguments):
    """A border of volumes: left, right, top, bottom, front, back."""

    function = staticmethod(functional_images.pad)

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCDHW", name=None):
        super().__init__([padding] * 6 if isinstance(padding, int) else padding, mode, value, data_format, name)
