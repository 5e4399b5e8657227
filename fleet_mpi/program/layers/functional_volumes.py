"""Convolution and pooling of volumes [N, C, D, H, W] (``paddle.nn.functional``)."""

from fleet_mpi.program.layers import functional_nn, nn


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCDHW", name=None):
    """``x`` convolved with ``weight`` [filters, channels / groups, d, h, w], plus a bias per filter."""
    return functional_nn.convolved("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format, name)


def conv3d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
                     data_format="NCDHW", output_size=None, name=None):
    """The transpose of conv3d; ``weight`` is [channels, filters / groups, d, h, w]."""
    return functional_nn.transposed("conv3d_transpose", 3, x, weight, bias, stride, padding, output_padding, groups,
                                    dilation, data_format, output_size, name)


def max_pool3d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW",
               name=None):
    """The maximum of windows, one behind the other unless a stride is given; ``return_mask``: its place too."""
    made = nn.pool3d(x, kernel_size, "max", kernel_size if stride is None else stride, padding, ceil_mode=ceil_mode,
                     name=name, data_format=data_format)
    return nn.with_mask(made, return_mask)


def avg_pool3d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
               data_format="NCDHW", name=None):
    """The mean of windows, one behind the other unless a stride is given; ``divisor_override``: their sum over that."""
    made = nn.pool3d(x, kernel_size, "avg", kernel_size if stride is None else stride, padding, ceil_mode=ceil_mode,
                     name=name, exclusive=exclusive, data_format=data_format)
    return functional_nn.divided(made, kernel_size, 3, divisor_override)


def adaptive_avg_pool3d(x, output_size, data_format="NCDHW", name=None):
    """The mean of ``output_size`` windows that cover the data evenly."""
    return nn.adaptive_pool3d(x, functional_nn.window_counts(x, output_size, 3, data_format), "avg", name=name,
                              data_format=data_format)


def adaptive_max_pool3d(x, output_size, return_mask=False, name=None):
    """The maximum of ``output_size`` windows that cover the data evenly; ``return_mask``: its place in the volume
    too."""
    return nn.adaptive_pool3d(x, functional_nn.window_counts(x, output_size, 3, "NCDHW"), "max",
                              require_index=return_mask, name=name)
