"""VGG: stacks of 3 x 3 convolutions, halved between, and three products."""

from fleet_mpi.program.layers import manipulation
from fleet_mpi.program.layers.classes import AdaptiveAvgPool2D, BatchNorm2D, Dropout, Linear, MaxPool2D, ReLU
from fleet_mpi.program.layers.convolution_classes import Conv2D
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import Sequential
from fleet_mpi.program.models import pretrained as weights

# Convolutions at each of the five sizes, by the number of layers with weights.
_CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


class VGG(Layer):
    """Logits of ``num_classes`` from what ``features`` makes of [batch, 3, 224, 224]; with 0 classes 7 x 7 means."""

    def __init__(self, features, num_classes=1000):
        super().__init__()
        self.num_classes = num_classes
        self.features = features
        self.avgpool = AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = Sequential(Linear(512 * 7 * 7, 4096), ReLU(), Dropout(), Linear(4096, 4096), ReLU(),
                                         Dropout(), Linear(4096, num_classes))

    def forward(self, x):
        """Add the ops for a batch of images."""
        x = self.avgpool(self.features(x))
        return self.classifier(manipulation.flatten_contiguous_range(x, 1, -1)) if self.num_classes > 0 else x


def _features(depth, batch_norm):
    layers, channels = [], 3
    for width, count in zip(_CHANNELS, _CONVOLUTIONS[depth]):
        for _ in range(count):
            layers += [Conv2D(channels, width, 3, padding=1), *([BatchNorm2D(width)] if batch_norm else []), ReLU()]
            channels = width
        layers.append(MaxPool2D(2, 2))
    return Sequential(*layers)


def _vgg(depth, pretrained, batch_norm, **kwargs):
    weights.refuse(f"vgg{depth}", pretrained)
    return VGG(_features(depth, batch_norm), **kwargs)


def vgg11(pretrained=False, batch_norm=False, **kwargs):
    """VGG with 8 convolutions; ``batch_norm`` puts a batch norm behind each."""
    return _vgg(11, pretrained, batch_norm, **kwargs)


def vgg13(pretrained=False, batch_norm=False, **kwargs):
    """VGG with 10 convolutions."""
    return _vgg(13, pretrained, batch_norm, **kwargs)


def vgg16(pretrained=False, batch_norm=False, **kwargs):
    """VGG with 13 convolutions."""
    return _vgg(16, pretrained, batch_norm, **kwargs)


def vgg19(pretrained=False, batch_norm=False, **kwargs):
    """VGG with 16 convolutions."""
    return _vgg(19, pretrained, batch_norm, **kwargs)
