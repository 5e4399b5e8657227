"""The layer classes of ``paddle.nn``, as used inside a static program: parameters at construction, ops at each call."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.param_attr import ParamAttr, as_param_attr
from fleet_mpi.program.layers import activation, functional_loss, functional_nn, given_weights, manipulation, nn
from fleet_mpi.program.layers.functional_dropout import dropout
from fleet_mpi.program.layers.layer import Layer


class Linear(Layer):
    """x weight + bias; the weight is [in_features, out_features]."""

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)
        self.name = name

    def forward(self, input):
        """Over the last dimension."""
        return given_weights.linear(input, self.weight, self.bias, self.name)

    def extra_repr(self):
        """The two sizes."""
        return ", ".join(map(str, self.weight.shape))


class Embedding(Layer):
    """Rows of a table by id; with ``sparse`` its gradient holds the rows that were used, only."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, sparse=False, weight_attr=None, name=None):
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise UsageError(f"Embedding: padding_idx {padding_idx} is outside of the table's {num_embeddings} rows")
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)
        self.padding_idx, self.sparse, self.name = padding_idx, sparse, name

    def forward(self, x):
        """The shape of the ids and the width of a row."""
        return given_weights.embedding(x, self.weight, self.padding_idx, self.sparse, self.name)


class _BatchNormBase(Layer):
    """Scale, shift and the running moments of ``num_features`` channels."""

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
                 data_format="NCHW", use_global_stats=None, name=None, moving_mean_name=None,
                 moving_variance_name=None):
        super().__init__()
        self.weight = self.create_parameter([num_features], _trained(weight_attr), default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], _trained(bias_attr), is_bias=True)
        self.register_buffer("_mean", self._moment(num_features, moving_mean_name, 0.0))
        self.register_buffer("_variance", self._moment(num_features, moving_variance_name, 1.0))
        last = data_format in ("NLC", "NHWC", "NDHWC")
        self._settings = dict(momentum=momentum, epsilon=epsilon, data_format="NHWC" if last else "NCHW",
                              use_global_stats=use_global_stats, name=name)

    def _moment(self, count, name, value):
        return self.create_parameter([count], ParamAttr(name=name, initializer=Constant(value), trainable=False))

    def forward(self, x):
        """By the batch's moments while training, else by the running ones."""
        return functional_nn.batch_norm(x, self._mean, self._variance, self.weight, self.bias,
                                        training=self.training, **self._settings)


class BatchNorm1D(_BatchNormBase):
    """Batch norm over [N, C] or [N, C, L]."""


class BatchNorm2D(_BatchNormBase):
    """Batch norm over images."""


class BatchNorm3D(_BatchNormBase):
    """Batch norm over volumes."""


class BatchNorm(_BatchNormBase):
    """Batch norm with the 1.x argument list: an activation, and names for the running moments."""

    def __init__(self, num_channels, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None,
                 bias_attr=None, dtype="float32", data_layout="NCHW", in_place=False, moving_mean_name=None,
                 moving_variance_name=None, do_model_average_for_mean_and_var=True, use_global_stats=False,
                 trainable_statistics=False):
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats,
                         moving_mean_name=moving_mean_name, moving_variance_name=moving_variance_name)
        self._act = act
        self.training = not is_test

    def forward(self, input):
        """Normalised, then the activation."""
        made = super().forward(input)
        return activation.apply(self._act, made) if self._act else made


class LayerNorm(Layer):
    """The last dimensions brought to mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, normalized_shape, epsilon=1e-05, weight_attr=None, bias_attr=None, name=None):
        super().__init__()
        self._shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        count = [math.prod(self._shape)]
        self.weight = self.create_parameter(count, weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(count, bias_attr, is_bias=True)
        self._epsilon, self._name = epsilon, name

    def forward(self, input):
        """Row by row."""
        return functional_nn.layer_norm(input, self._shape, self.weight, self.bias, self._epsilon, self._name)


class Dropout(Layer):
    """Each element zero with probability ``p`` while training."""

    def __init__(self, p=0.5, axis=None, mode="upscale_in_train", name=None):
        super().__init__()
        self.p, self.axis, self.mode, self.name = p, axis, mode, name

    def forward(self, input):
        """Unchanged for inference (upscale_in_train)."""
        return dropout(input, self.p, self.axis, self.training, self.mode, self.name)


class Flatten(Layer):
    """Dimensions from ``start_axis`` to ``stop_axis`` as one."""

    def __init__(self, start_axis=1, stop_axis=-1):
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input):
        """A view of the input."""
        return manipulation.flatten_contiguous_range(input, self.start_axis, self.stop_axis)


class OfArguments(Layer):
    """A layer that is one function of its input and of the arguments it was made with."""

    function = None

    def __init__(self, *args, **kwargs):
        super().__init__()
        self._args, self._kwargs = args, kwargs

    def forward(self, *inputs):
        """The function of the inputs."""
        return type(self).function(*inputs, *self._args, **self._kwargs)


class MaxPool2D(OfArguments):
    """The maximum of windows."""

    function = staticmethod(functional_nn.max_pool2d)

    def __init__(self, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCHW",
                 name=None):
        super().__init__(kernel_size, stride, padding, return_mask, ceil_mode, data_format, name)


class AvgPool2D(OfArguments):
    """The mean of windows."""

    function = staticmethod(functional_nn.avg_pool2d)

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
                 data_format="NCHW", name=None):
        super().__init__(kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format, name)


class AdaptiveAvgPool2D(OfArguments):
    """The mean of ``output_size`` windows that cover the data evenly."""

    function = staticmethod(functional_nn.adaptive_avg_pool2d)

    def __init__(self, output_size, data_format="NCHW", name=None):
        super().__init__(output_size, data_format, name)


class AdaptiveMaxPool2D(OfArguments):
    """The maximum of ``output_size`` windows that cover the data evenly."""

    function = staticmethod(functional_nn.adaptive_max_pool2d)

    def __init__(self, output_size, return_mask=False, name=None):
        super().__init__(output_size, return_mask, name)


class ReLU(OfArguments):
    """max(x, 0)."""

    function = staticmethod(activation.relu)

    def __init__(self, name=None):
        super().__init__(name=name)


class Sigmoid(ReLU):
    """1 / (1 + e^-x)."""

    function = staticmethod(activation.sigmoid)


class Tanh(ReLU):
    """The hyperbolic tangent."""

    function = staticmethod(activation.tanh)


class LeakyReLU(OfArguments):
    """x, or ``negative_slope`` times x below 0."""

    function = staticmethod(activation.leaky_relu)

    def __init__(self, negative_slope=0.01, name=None):
        super().__init__(negative_slope, name)


class GELU(OfArguments):
    """x times the normal distribution's probability of less than x."""

    function = staticmethod(activation.gelu)

    def __init__(self, approximate=False, name=None):
        super().__init__(approximate, name)


class Softmax(OfArguments):
    """Probabilities that sum to one along ``axis``."""

    function = staticmethod(nn.softmax)

    def __init__(self, axis=-1, name=None):
        super().__init__(axis=axis, name=name)


class CrossEntropyLoss(OfArguments):
    """The cross entropy of softmax(input) with the labels."""

    function = staticmethod(functional_loss.cross_entropy)

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1, use_softmax=True,
                 name=None):
        super().__init__(weight, ignore_index, reduction, soft_label, axis, use_softmax, name)


class MSELoss(OfArguments):
    """(input - label)^2."""

    function = staticmethod(functional_loss.mse_loss)

    def __init__(self, reduction="mean"):
        super().__init__(reduction)


class L1Loss(OfArguments):
    """|input - label|."""

    function = staticmethod(functional_loss.l1_loss)

    def __init__(self, reduction="mean", name=None):
        super().__init__(reduction, name)


class BCELoss(OfArguments):
    """The cross entropy of probabilities with labels in [0, 1]."""

    function = staticmethod(functional_loss.binary_cross_entropy)

    def __init__(self, weight=None, reduction="mean", name=None):
        super().__init__(weight, reduction, name)


class BCEWithLogitsLoss(OfArguments):
    """The cross entropy of sigmoid(input) with labels in [0, 1]."""

    function = staticmethod(functional_loss.binary_cross_entropy_with_logits)

    def __init__(self, weight=None, reduction="mean", pos_weight=None, name=None):
        super().__init__(weight, reduction, pos_weight, name)


def _trained(attr):
    """The attribute; where it is False, one of a parameter that is never trained."""
    return ParamAttr(trainable=False) if as_param_attr(attr) is False else as_param_attr(attr)
