"""Dropout of channels and towards selu's lowest value, as layer classes of ``paddle.nn``."""

from fleet_mpi.program.layers import functional_dropout
from fleet_mpi.program.layers.layer import Layer


class _OfChannels(Layer):
    """Whole channels zero with probability ``p`` while training."""

    function = None

    def __init__(self, p, data_format, name):
        super().__init__()
        self.p, self.data_format, self.name = p, data_format, name

    def forward(self, input):
        """Unchanged for inference."""
        return type(self).function(input, self.p, self.training, self.data_format, self.name)


class Dropout2D(_OfChannels):
    """Each channel of each image zero with probability ``p`` while training."""

    function = staticmethod(functional_dropout.dropout2d)

    def __init__(self, p=0.5, data_format="NCHW", name=None):
        super().__init__(p, data_format, name)


class Dropout3D(_OfChannels):
    """Each channel of each volume zero with probability ``p`` while training."""

    function = staticmethod(functional_dropout.dropout3d)

    def __init__(self, p=0.5, data_format="NCDHW", name=None):
        super().__init__(p, data_format, name)


class AlphaDropout(Layer):
    """Elements become selu's lowest value with probability ``p`` while training; mean and variance are kept."""

    def __init__(self, p=0.5, name=None):
        super().__init__()
        self.p, self.name = p, name

    def forward(self, input):
        """Unchanged for inference."""
        return functional_dropout.alpha_dropout(input, self.p, self.training, self.name)
