"""``paddle.nn``: layer classes for static programs, losses, clips."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.nn import functional, initializer
from fleet_mpi.program.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from fleet_mpi.program.layers.classes import (GELU, AdaptiveAvgPool2D, AdaptiveMaxPool2D, AvgPool2D, BatchNorm,
                                              BatchNorm1D, BatchNorm2D, BatchNorm3D, BCELoss, BCEWithLogitsLoss,
                                              Conv2D, CrossEntropyLoss, Dropout, Embedding, Flatten, L1Loss, LayerNorm,
                                              LeakyReLU, Linear, MaxPool2D, MSELoss, ReLU, Sigmoid, Softmax, Tanh)
from fleet_mpi.program.layers.layer import Layer, LayerList, Sequential

__getattr__ = _missing_name("paddle.nn", globals())
