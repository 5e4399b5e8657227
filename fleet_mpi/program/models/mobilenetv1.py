"""MobileNetV1: convolutions of single channels, mixed by convolutions of 1 x 1."""

from fleet_mpi.program.layers import manipulation
from fleet_mpi.program.layers.classes import AdaptiveAvgPool2D, BatchNorm2D, Linear, ReLU
from fleet_mpi.program.layers.convolution_classes import Conv2D
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.models import pretrained as weights

# Name, channels in and out, stride: before they are scaled.
_BLOCKS = (("conv2_1", 32, 64, 1), ("conv2_2", 64, 128, 2), ("conv3_1", 128, 128, 1), ("conv3_2", 128, 256, 2),
           ("conv4_1", 256, 256, 1), ("conv4_2", 256, 512, 2), *((f"conv5_{i}", 512, 512, 1) for i in range(1, 6)),
           ("conv5_6", 512, 1024, 2), ("conv6", 1024, 1024, 1))


class ConvBNLayer(Layer):
    """A convolution, a batch norm, and relu."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, num_groups=1):
        super().__init__()
        self._conv = Conv2D(in_channels, out_channels, kernel_size, stride=stride, padding=padding, groups=num_groups,
                            bias_attr=False)
        self._norm_layer = BatchNorm2D(out_channels)
        self._act = ReLU()

    def forward(self, x):
        """Add the three ops."""
        return self._act(self._norm_layer(self._conv(x)))


class DepthwiseSeparable(Layer):
    """A convolution of every channel by itself, then one of 1 x 1."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self._depthwise_conv = ConvBNLayer(in_channels, in_channels, 3, stride, 1, num_groups=in_channels)
        self._pointwise_conv = ConvBNLayer(in_channels, out_channels, 1, 1, 0)

    def forward(self, x):
        """Add the ops of both."""
        return self._pointwise_conv(self._depthwise_conv(x))


class MobileNetV1(Layer):
    """Logits of ``num_classes`` from [batch, 3, height, width]; ``scale`` multiplies all widths."""

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        self.conv1 = ConvBNLayer(3, int(32 * scale), 3, 2, 1)
        self.dwsl = [self.add_sublayer(name, DepthwiseSeparable(int(before * scale), int(after * scale), stride))
                     for name, before, after, stride in _BLOCKS]
        if with_pool:
            self.pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = Linear(int(1024 * scale), num_classes)

    def forward(self, x):
        """Add the ops for a batch of images."""
        x = self.conv1(x)
        for block in self.dwsl:
            x = block(x)
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.fc(manipulation.flatten_contiguous_range(x, 1, -1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained=False, scale=1.0, **kwargs):
    """MobileNetV1 with all widths multiplied by ``scale``."""
    weights.refuse("mobilenet_v1", pretrained)
    return MobileNetV1(scale=scale, **kwargs)
