"""Lines and images as layer classes of ``paddle.nn``: pools, norms within a sample, borders, sizes."""

import math

from fleet_mpi.errors import NotBuilt
from fleet_mpi.program.build.initializers import Constant, Normal
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.layers import functional_images, functional_lines, images
from fleet_mpi.program.layers.classes import OfArguments
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.single_op import single_op


class MaxPool1D(OfArguments):
    """The maximum of windows of lines."""

    function = staticmethod(functional_lines.max_pool1d)


class AvgPool1D(OfArguments):
    """The mean of windows of lines."""

    function = staticmethod(functional_lines.avg_pool1d)


class AdaptiveAvgPool1D(OfArguments):
    """The mean of ``output_size`` windows that cover lines evenly."""

    function = staticmethod(functional_lines.adaptive_avg_pool1d)


class AdaptiveMaxPool1D(OfArguments):
    """The maximum of ``output_size`` windows that cover lines evenly."""

    function = staticmethod(functional_lines.adaptive_max_pool1d)


class GroupNorm(Layer):
    """Each group of channels of a sample brought to mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, num_groups, num_channels, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__()
        self.weight = self.create_parameter([num_channels], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)
        self._settings = dict(num_groups=num_groups, epsilon=epsilon, data_format=data_format, name=name)

    def forward(self, input):
        """Group by group."""
        return functional_images.group_norm(input, weight=self.weight, bias=self.bias, **self._settings)


class _InstanceNormBase(Layer):
    """Scale and shift of ``num_features`` channels, each normalised in each sample."""

    def __init__(self, num_features, epsilon=1e-5, momentum=0.9, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__()
        if not data_format.startswith("NC"):
            raise NotBuilt(f"{type(self).__name__}: channels must come second (NCHW), got data_format {data_format!r}")
        self.scale = self.create_parameter([num_features], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        self._epsilon, self._name = epsilon, name

    def forward(self, input):
        """Channel by channel."""
        return functional_images.instance_norm(input, weight=self.scale, bias=self.bias, eps=self._epsilon,
                                               name=self._name)


class InstanceNorm1D(_InstanceNormBase):
    """Instance norm over lines."""


class InstanceNorm2D(_InstanceNormBase):
    """Instance norm over images."""


class InstanceNorm3D(_InstanceNormBase):
    """Instance norm over volumes."""


class LocalResponseNorm(OfArguments):
    """Each channel divided by a power of its neighbours' squares."""

    function = staticmethod(functional_images.local_response_norm)


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, found from vectors that the layer keeps."""

    def __init__(self, weight_shape, dim=0, power_iters=1, eps=1e-12, dtype="float32"):
        super().__init__(dtype=dtype)
        rows = weight_shape[dim]
        fixed = dict(attr=ParamAttr(trainable=False), default_initializer=Normal(0.0, 1.0))
        self.weight_u = self.create_parameter([rows], **fixed)
        self.weight_v = self.create_parameter([math.prod(weight_shape) // rows], **fixed)
        self._attrs = {"dim": dim, "power_iters": power_iters, "eps": eps}

    def forward(self, x):
        """The weight, scaled."""
        return single_op("spectral_norm", {"Weight": x, "U": self.weight_u, "V": self.weight_v}, self._attrs)


class Upsample(OfArguments):
    """Images of another size."""

    function = staticmethod(functional_images.interpolate)


class UpsamplingNearest2D(OfArguments):
    """Images of another size, each pixel from the nearest one."""

    function = staticmethod(functional_images.interpolate)

    def __init__(self, size=None, scale_factor=None, data_format="NCHW", name=None):
        super().__init__(size, scale_factor, "nearest", False, 0, data_format, name)


class UpsamplingBilinear2D(OfArguments):
    """Images of another size by linear interpolation between the outermost pixels."""

    function = staticmethod(functional_images.interpolate)

    def __init__(self, size=None, scale_factor=None, data_format="NCHW", name=None):
        super().__init__(size, scale_factor, "bilinear", True, 0, data_format, name)


class PixelShuffle(OfArguments):
    """Channels made pixels."""

    function = staticmethod(functional_images.pixel_shuffle)


class Pad1D(OfArguments):
    """A border of lines."""

    function = staticmethod(functional_images.pad)

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCL", name=None):
        padding = [padding] * 2 if isinstance(padding, int) else padding
        super().__init__(padding, mode, value, data_format, name)


class Pad2D(OfArguments):
    """A border of images: left, right, top, bottom."""

    function = staticmethod(functional_images.pad)

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCHW", name=None):
        padding = [padding] * 4 if isinstance(padding, int) else padding
        super().__init__(padding, mode, value, data_format, name)


class CosineSimilarity(OfArguments):
    """The cosine of the angle between two variables along an axis."""

    function = staticmethod(functional_images.cosine_similarity)


class Unfold(OfArguments):
    """The patches of each image as columns."""

    function = staticmethod(images.unfold)


class Bilinear(Layer):
    """x1 W_i x2 + b_i for ``out_features`` matrices W_i."""

    def __init__(self, in1_features, in2_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__()
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)
        self._name = name

    def forward(self, x1, x2):
        """Row by row."""
        return functional_images.bilinear(x1, x2, self.weight, self.bias, self._name)
