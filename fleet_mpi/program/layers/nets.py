"""Networks of a few layers each, under the names of ``fluid.nets``."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers.nn import batch_norm, conv2d, dropout, pool2d, softmax
from fleet_mpi.program.layers.single_op import single_op


def simple_img_conv_pool(input, num_filters, filter_size, pool_size, pool_stride, pool_padding=0, pool_type="max",
                         global_pooling=False, conv_stride=1, conv_padding=0, conv_dilation=1, conv_groups=1,
                         param_attr=None, bias_attr=None, act=None, use_cudnn=True):
    """One convolution, then one pooling."""
    made = conv2d(input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups, param_attr,
                  bias_attr, use_cudnn, act)
    return pool2d(made, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn)


def img_conv_group(input, conv_num_filter, pool_size, conv_padding=1, conv_filter_size=3, conv_act=None,
                   param_attr=None, conv_with_batchnorm=False, conv_batchnorm_drop_rate=0.0, pool_stride=1,
                   pool_type="max", use_cudnn=True):
    """Several convolutions, each with batch norm and dropout where asked for, then one pooling."""
    count = len(conv_num_filter)
    paddings, sizes, attrs, norms, rates = (
        _one_each(given, count, what) for given, what in (
            (conv_padding, "conv_padding"), (conv_filter_size, "conv_filter_size"), (param_attr, "param_attr"),
            (conv_with_batchnorm, "conv_with_batchnorm"), (conv_batchnorm_drop_rate, "conv_batchnorm_drop_rate")))
    made = input
    for filters, size, padding, attr, norm, rate in zip(conv_num_filter, sizes, paddings, attrs, norms, rates):
        made = conv2d(made, filters, size, padding=padding, param_attr=attr, act=None if norm else conv_act,
                      use_cudnn=use_cudnn)
        if norm:
            made = batch_norm(made, act=conv_act)
            if abs(rate) > 1e-5:
                made = dropout(made, rate)
    return pool2d(made, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)


def glu(input, dim=-1):
    """One half of the input along ``dim``, times the sigmoid of the other half."""
    axis = dim % len(input.shape)
    if input.shape[axis] % 2:
        raise UsageError(f"glu: expected an even size along dimension {dim}, got {input.shape}")
    value, gate = _halves(input, axis)
    return single_op("elementwise_mul", {"X": value, "Y": single_op("sigmoid", {"X": gate})}, layer="glu")


def scaled_dot_product_attention(queries, keys, values, num_heads=1, dropout_rate=0.0):
    """Attention over [batch, time, size] inputs: softmax(Q K^T / sqrt(d)) V, in ``num_heads`` parts put together."""
    for what, size in (("queries and keys", keys.shape[-1]), ("values", values.shape[-1])):
        if size % num_heads:
            raise UsageError(f"scaled_dot_product_attention: expected {what} in multiples of num_heads {num_heads}, "
                             f"got {size}")
    if len(queries.shape) != 3 or queries.shape[-1] != keys.shape[-1]:
        raise UsageError(f"scaled_dot_product_attention: expected queries and keys [batch, time, size] of one size, "
                         f"got {queries.shape} and {keys.shape}")
    q, k, v = (_to_heads(one, num_heads) for one in (queries, keys, values))
    scaled = single_op("scale", {"X": q}, {"scale": float(keys.shape[-1] // num_heads) ** -0.5})
    weights = softmax(single_op("matmul", {"X": scaled, "Y": k}, {"transpose_Y": True}))
    if dropout_rate:
        weights = dropout(weights, dropout_rate)
    return _from_heads(single_op("matmul", {"X": weights, "Y": v}), num_heads)


def _one_each(given, count, what):
    if not isinstance(given, (list, tuple)):
        return [given] * count
    if len(given) != count:
        raise UsageError(f"img_conv_group: expected one {what} for each of {count} convolutions, got {given!r}")
    return list(given)


def _halves(input, axis):
    half = input.shape[axis] // 2
    cut = {"axes": [axis], "starts": [0], "ends": [half]}
    rest = {"axes": [axis], "starts": [half], "ends": [2 * half]}
    return (single_op("slice", {"Input": input}, attrs, layer="split") for attrs in (cut, rest))


def _to_heads(x, heads):
    """[batch, time, size] -> [batch, heads, time, size / heads]."""
    if heads == 1:
        return x
    parts = single_op("reshape2", {"X": x}, {"shape": [0, 0, heads, x.shape[-1] // heads]})
    return single_op("transpose2", {"X": parts}, {"axis": [0, 2, 1, 3]})


def _from_heads(x, heads):
    if heads == 1:
        return x
    parts = single_op("transpose2", {"X": x}, {"axis": [0, 2, 1, 3]})
    return single_op("reshape2", {"X": parts}, {"shape": [0, 0, parts.shape[2] * parts.shape[3]]})
