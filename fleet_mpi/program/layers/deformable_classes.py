"""Deformable convolution with the argument lists of 2.x: as a function of given weights, and as a layer class."""

import math

from fleet_mpi.program.build.initializers import Normal
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.nn import per_dimension
from fleet_mpi.program.layers.single_op import single_op


def deform_conv2d(x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1,
                  mask=None,
                  name=None):
    """A convolution that reads where ``offset`` says, with the weights of ``mask`` where there is one."""
    windows = {f"{what}s": per_dimension(given, 2, f"deform_conv2d: {what}") for what, given in (
        ("stride", stride), ("padding", padding), ("dilation", dilation))}
    inputs = {"Input": x, "Offset": offset, "Filter": weight, **({} if mask is None else {"Mask": mask})}
    out = single_op("deformable_conv_v1" if mask is None else "deformable_conv", inputs, {
        **windows, "groups": groups, "deformable_groups": deformable_groups, "im2col_step": 1}, out="Output", name=name)
    return out if bias is None else single_op("elementwise_add", {"X": out, "Y": bias}, {"axis": 1})


class DeformConv2D(Layer):
    """Deformable convolution with ``out_channels`` filters; the weight is [out, in / groups, h, w]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, deformable_groups=1,
                 groups=1, weight_attr=None, bias_attr=None):
        super().__init__()
        window = per_dimension(kernel_size, 2, "DeformConv2D: kernel_size")
        self.weight = self.create_parameter(
            [out_channels, in_channels // groups] + window, weight_attr,
            default_initializer=Normal(0.0, math.sqrt(2.0 / (math.prod(window) * in_channels))))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)
        self._arguments = (stride, padding, dilation, deformable_groups, groups)

    def forward(self, x, offset, mask=None):
        """The filtered channels."""
        return deform_conv2d(x, offset, self.weight, self.bias, *self._arguments, mask)
