"""ResNet: blocks of convolutions whose input is added to their output."""

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.layers import manipulation
from fleet_mpi.program.layers.classes import AdaptiveAvgPool2D, BatchNorm2D, Linear, MaxPool2D, ReLU
from fleet_mpi.program.layers.convolution_classes import Conv2D
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import Sequential
from fleet_mpi.program.models import pretrained as weights

_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class BasicBlock(Layer):
    """Two 3 x 3 convolutions beside the input, which ``downsample`` brings to their shape where it differs."""

    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1,
                 norm_layer=None):
        super().__init__()
        if dilation > 1 or (groups, base_width) != (1, 64):
            raise NotBuilt(f"BasicBlock: only groups=1, base_width=64, dilation=1 (as in the original), got {groups}, "
                           f"{base_width}, {dilation}")
        norm_layer = norm_layer or BatchNorm2D
        self.conv1 = Conv2D(inplanes, planes, 3, stride=stride, padding=1, bias_attr=False)
        self.bn1 = norm_layer(planes)
        self.relu = ReLU()
        self.conv2 = Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = norm_layer(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x):
        """Add the ops of the block."""
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + (x if self.downsample is None else self.downsample(x)))


class BottleneckBlock(Layer):
    """A 3 x 3 convolution between two of 1 x 1, the last with four times the channels, beside the input."""

    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1,
                 norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or BatchNorm2D
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = Conv2D(inplanes, width, 1, bias_attr=False)
        self.bn1 = norm_layer(width)
        self.conv2 = Conv2D(width, width, 3, padding=dilation, stride=stride, groups=groups, dilation=dilation,
                            bias_attr=False)
        self.bn2 = norm_layer(width)
        self.conv3 = Conv2D(width, planes * self.expansion, 1, bias_attr=False)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = ReLU()
        self.downsample, self.stride = downsample, stride

    def forward(self, x):
        """Add the ops of the block."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + (x if self.downsample is None else self.downsample(x)))


class ResNet(Layer):
    """Logits of ``num_classes`` from [batch, 3, height, width]; with 0 classes (and no pool) the features before
    them."""

    def __init__(self, block, depth, num_classes=1000, with_pool=True):
        super().__init__()
        if depth not in _BLOCKS:
            raise UsageError(f"ResNet: expected a depth of {', '.join(map(str, _BLOCKS))}, got {depth!r}")
        self.num_classes, self.with_pool, self._norm_layer, self.inplanes = num_classes, with_pool, BatchNorm2D, 64
        self.conv1 = Conv2D(3, 64, 7, stride=2, padding=3, bias_attr=False)
        self.bn1 = BatchNorm2D(64)
        self.relu = ReLU()
        self.maxpool = MaxPool2D(3, 2, padding=1)
        self.layer1, self.layer2, self.layer3, self.layer4 = (
            self._make_layer(block, planes, count, stride)
            for planes, count, stride in zip((64, 128, 256, 512), _BLOCKS[depth], (1, 2, 2, 2)))
        if with_pool:
            self.avgpool = AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = Linear(512 * block.expansion, num_classes)

    def _make_layer(self, block, planes, count, stride):
        """The blocks of one size; the first one changes it."""
        wide, downsample = planes * block.expansion, None
        if stride != 1 or self.inplanes != wide:
            downsample = Sequential(Conv2D(self.inplanes, wide, 1, stride=stride, bias_attr=False),
                                    self._norm_layer(wide))
        first = block(self.inplanes, planes, stride, downsample)
        self.inplanes = wide
        return Sequential(first, *(block(wide, planes) for _ in range(1, count)))

    def forward(self, x):
        """Add the ops for a batch of images."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        x = self.avgpool(x) if self.with_pool else x
        return self.fc(manipulation.flatten_contiguous_range(x, 1, -1)) if self.num_classes > 0 else x


def _resnet(depth, pretrained, **kwargs):
    weights.refuse(f"resnet{depth}", pretrained)
    return ResNet(BasicBlock if depth < 50 else BottleneckBlock, depth, **kwargs)


def resnet18(pretrained=False, **kwargs):
    """ResNet with 18 layers."""
    return _resnet(18, pretrained, **kwargs)


def resnet34(pretrained=False, **kwargs):
    """ResNet with 34 layers."""
    return _resnet(34, pretrained, **kwargs)


def resnet50(pretrained=False, **kwargs):
    """ResNet with 50 layers."""
    return _resnet(50, pretrained, **kwargs)


def resnet101(pretrained=False, **kwargs):
    """ResNet with 101 layers."""
    return _resnet(101, pretrained, **kwargs)


def resnet152(pretrained=False, **kwargs):
    """ResNet with 152 layers."""
    return _resnet(152, pretrained, **kwargs)
