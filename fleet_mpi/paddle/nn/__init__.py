"""``paddle.nn``: layer classes for static programs, losses, clips."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.nn import functional, initializer
from fleet_mpi.paddle.of_1x import NN as _OF_1X
from fleet_mpi.program.build.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from fleet_mpi.program.layers.activation_classes import (ELU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh,
                                                         LogSigmoid, LogSoftmax, Maxout, Mish, PReLU, ReLU6, Silu,
                                                         Softplus, Softshrink, Softsign, Swish, Tanhshrink,
                                                         ThresholdedReLU)
from fleet_mpi.program.layers.classes import (GELU, AdaptiveAvgPool2D, AdaptiveMaxPool2D, AvgPool2D, BatchNorm,
                                              BatchNorm1D, BatchNorm2D, BatchNorm3D, BCELoss, BCEWithLogitsLoss,
                                              CrossEntropyLoss, Dropout, Embedding, Flatten, L1Loss, LayerNorm,
                                              LeakyReLU, Linear, MaxPool2D, MSELoss, ReLU, Sigmoid, Softmax, Tanh)
from fleet_mpi.program.layers.convolution_classes import (Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D,
                                                          Conv3DTranspose)
from fleet_mpi.program.layers.image_classes import (AdaptiveAvgPool1D, AdaptiveMaxPool1D, AvgPool1D, Bilinear,
                                                    CosineSimilarity, GroupNorm, InstanceNorm1D,
                                                    InstanceNorm2D, InstanceNorm3D, LocalResponseNorm, MaxPool1D, Pad1D,
                                                    Pad2D, PixelShuffle, SpectralNorm, Unfold, Upsample,
                                                    UpsamplingBilinear2D, UpsamplingNearest2D)
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import LayerList, ParameterList, Sequential
from fleet_mpi.program.layers.transformer import (MultiHeadAttention, Transformer, TransformerDecoder,
                                                  TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer)

_RECURRENT = ("RNNCellBase", "SimpleRNNCell", "LSTMCell", "GRUCell", "RNN", "BiRNN", "SimpleRNN", "LSTM", "GRU")
_VOLUMES = ("MaxPool3D", "AvgPool3D", "AdaptiveAvgPool3D", "AdaptiveMaxPool3D", "Pad3D")
_LOSSES = ("NLLLoss", "KLDivLoss", "SmoothL1Loss", "MarginRankingLoss", "CTCLoss", "HSigmoidLoss", "PairwiseDistance")
_LATE = {**_OF_1X,
         "layer": "fleet_mpi.paddle.nn.layer", "utils": "fleet_mpi.paddle.nn.utils",
         **dict.fromkeys(_VOLUMES, "fleet_mpi.program.layers.volume_classes"),
         **dict.fromkeys(_LOSSES, "fleet_mpi.program.layers.loss_classes"),
         **dict.fromkeys(("Dropout2D", "Dropout3D", "AlphaDropout"), "fleet_mpi.program.layers.dropout_classes"),
         "SyncBatchNorm": "fleet_mpi.program.layers.synchronised_norm",
         "diag_embed": "fleet_mpi.program.layers.linear_algebra",
         **dict.fromkeys(_RECURRENT, "fleet_mpi.program.layers.recurrent_classes"),
         "BeamSearchDecoder": "fleet_mpi.program.layers.beam_decoder",
         "dynamic_decode": "fleet_mpi.program.layers.decoding"}

__getattr__ = _missing_name("paddle.nn", globals(), _LATE)
