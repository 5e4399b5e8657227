"""LeNet: two convolutions and three products, for greys of 28 x 28."""

from fleet_mpi.program.layers import manipulation
from fleet_mpi.program.layers.classes import Linear, MaxPool2D, ReLU
from fleet_mpi.program.layers.convolution_classes import Conv2D
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import Sequential


class LeNet(Layer):
    """Logits of ``num_classes`` from [batch, 1, 28, 28]; with 0 classes the features [batch, 16, 5, 5]."""

    def __init__(self, num_classes=10):
        super().__init__()
        self.num_classes = num_classes
        self.features = Sequential(Conv2D(1, 6, 3, stride=1, padding=1), ReLU(), MaxPool2D(2, 2),
                                   Conv2D(6, 16, 5, stride=1, padding=0), ReLU(), MaxPool2D(2, 2))
        if num_classes > 0:
            self.fc = Sequential(Linear(400, 120), Linear(120, 84), Linear(84, num_classes))

    def forward(self, inputs):
        """Add the ops for a batch of images."""
        x = self.features(inputs)
        return self.fc(manipulation.flatten_contiguous_range(x, 1, -1)) if self.num_classes > 0 else x
