"""Pools and borders of volumes as layer classes of ``paddle.nn``."""

from fleet_mpi.program.layers import functional_images, functional_volumes
from fleet_mpi.program.layers.classes import OfArguments


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
