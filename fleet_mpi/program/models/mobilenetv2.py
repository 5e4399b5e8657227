"""MobileNetV2: blocks that widen, convolve single channels, and narrow again beside their input."""

from fleet_mpi.program.layers import manipulation
from fleet_mpi.program.layers.activation_classes import ReLU6
from fleet_mpi.program.layers.classes import AdaptiveAvgPool2D, BatchNorm2D, Dropout, Linear
from fleet_mpi.program.layers.convolution_classes import Conv2D
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import Sequential
from fleet_mpi.program.models import pretrained as weights

# Expansion, channels, blocks, stride of the first.
_BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class ConvBNReLU(Sequential):
    """A convolution, a batch norm, and relu6."""

    def __init__(self, in_planes, out_planes, kernel_size=3, stride=1, groups=1, norm_layer=BatchNorm2D):
        super().__init__(Conv2D(in_planes, out_planes, kernel_size, stride, (kernel_size - 1) // 2, groups=groups,
                                bias_attr=False), norm_layer(out_planes), ReLU6())


class InvertedResidual(Layer):
    """More channels, each by itself, fewer again; beside the input where it has the same shape."""

    def __init__(self, inp, oup, stride, expand_ratio, norm_layer=BatchNorm2D):
        super().__init__()
        hidden = int(round(inp * expand_ratio))
        self.stride, self.use_res_connect = stride, stride == 1 and inp == oup
        wider = [ConvBNReLU(inp, hidden, kernel_size=1, norm_layer=norm_layer)] if expand_ratio != 1 else []
        self.conv = Sequential(*wider, ConvBNReLU(hidden, hidden, stride=stride, groups=hidden, norm_layer=norm_layer),
                               Conv2D(hidden, oup, 1, bias_attr=False), norm_layer(oup))

    def forward(self, x):
        """Add the ops of the block."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(Layer):
    """Logits of ``num_classes`` from [batch, 3, height, width]; ``scale`` multiplies all widths."""

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        channels, self.last_channel = _rounded(32 * scale), _rounded(1280 * max(1.0, scale))
        layers = [ConvBNReLU(3, channels, stride=2)]
        for expansion, width, count, stride in _BLOCKS:
            for place in range(count):
                layers.append(InvertedResidual(channels, _rounded(width * scale), stride if place == 0 else 1,
                                               expansion))
                channels = _rounded(width * scale)
        self.features = Sequential(*layers, ConvBNReLU(channels, self.last_channel, kernel_size=1))
        if with_pool:
            self.pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = Sequential(Dropout(0.2), Linear(self.last_channel, num_classes))

    def forward(self, x):
        """Add the ops for a batch of images."""
        x = self.features(x)
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.classifier(manipulation.flatten_contiguous_range(x, 1, -1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained=False, scale=1.0, **kwargs):
    """MobileNetV2 with all widths multiplied by ``scale``."""
    weights.refuse("mobilenet_v2", pretrained)
    return MobileNetV2(scale=scale, **kwargs)


def _rounded(channels, divisor=8):
    """The nearest multiple of 8, but not less than 0.9 of what was asked for."""
    near = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return near + divisor if near < 0.9 * channels else near
