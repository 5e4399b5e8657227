"""The functions and classes that the documentation of 2.0 lists, each with its arguments in order and their
defaults."""

import ast
import inspect

import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import NotBuilt

OF_ONE = "abs acos asin atan ceil cos cosh erf exp floor isfinite isinf isnan log log10 log1p log2 reciprocal round rsqrt " \
         "sign sin sinh sqrt square tan tanh conj inverse bernoulli is_empty numel tanh_"
OF_TWO = "add bmm divide dot equal equal_all floor_divide floor_mod greater_equal greater_than kron less_equal less_than " \
         "maximum minimum mod multiply not_equal pow remainder subtract"
FUNCTIONS = """
    add_n(inputs, name=None)
    addmm(input, x, y, beta=1.0, alpha=1.0, name=None)
    all(x, axis=None, keepdim=False, name=None)
    allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None)
    any(x, axis=None, keepdim=False, name=None)
    arange(start=0, end=None, step=1, dtype=None, name=None)
    argmax(x, axis=None, keepdim=False, dtype="int64", name=None)
    argmin(x, axis=None, keepdim=False, dtype="int64", name=None)
    argsort(x, axis=-1, descending=False, name=None)
    assign(x, output=None)
    broadcast_shape(x_shape, y_shape)
    broadcast_to(x, shape, name=None)
    cast(x, dtype)
    cholesky(x, upper=False, name=None)
    chunk(x, chunks, axis=0, name=None)
    clip(x, min=None, max=None, name=None)
    concat(x, axis=0, name=None)
    crop(x, shape=None, offsets=None, name=None)
    cross(x, y, axis=None, name=None)
    cumsum(x, axis=None, dtype=None, name=None)
    diag(x, offset=0, padding_value=0, name=None)
    dist(x, y, p=2)
    empty(shape, dtype=None, name=None)
    empty_like(x, dtype=None, name=None)
    expand(x, shape, name=None)
    expand_as(x, y, name=None)
    eye(num_rows, num_columns=None, dtype=None, name=None)
    flatten(x, start_axis=0, stop_axis=-1, name=None)
    flip(x, axis, name=None)
    full(shape, fill_value, dtype=None, name=None)
    full_like(x, fill_value, dtype=None, name=None)
    gather(x, index, axis=None, name=None)
    gather_nd(x, index, name=None)
    histogram(input, bins=100, min=0, max=0)
    increment(x, value=1.0, name=None)
    index_sample(x, index)
    index_select(x, index, axis=0, name=None)
    is_tensor(x)
    linspace(start, stop, num, dtype=None, name=None)
    logical_and(x, y, out=None, name=None)
    logical_not(x, out=None, name=None)
    logical_or(x, y, out=None, name=None)
    logical_xor(x, y, out=None, name=None)
    logsumexp(x, axis=None, keepdim=False, name=None)
    masked_select(x, mask, name=None)
    matmul(x, y, transpose_x=False, transpose_y=False, name=None)
    max(x, axis=None, keepdim=False, name=None)
    mean(x, axis=None, keepdim=False, name=None)
    median(x, axis=None, keepdim=False, name=None)
    min(x, axis=None, keepdim=False, name=None)
    mm(input, mat2, name=None)
    multinomial(x, num_samples=1, replacement=False, name=None)
    multiplex(inputs, index, name=None)
    mv(x, vec, name=None)
    nonzero(x, as_tuple=False)
    norm(x, p="fro", axis=None, keepdim=False, name=None)
    normal(mean=0.0, std=1.0, shape=None, name=None)
    ones(shape, dtype=None, name=None)
    ones_like(x, dtype=None, name=None)
    prod(x, axis=None, keepdim=False, dtype=None, name=None)
    rand(shape, dtype=None, name=None)
    randint(low=0, high=None, shape=(1,), dtype=None, name=None)
    randn(shape, dtype=None, name=None)
    randperm(n, dtype="int64", name=None)
    rank(input)
    reshape(x, shape, name=None)
    reshape_(x, shape, name=None)
    reverse(x, axis, name=None)
    roll(x, shifts, axis=None, name=None)
    scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None)
    scatter(x, index, updates, overwrite=True, name=None)
    scatter_(x, index, updates, overwrite=True, name=None)
    scatter_nd(index, updates, shape, name=None)
    scatter_nd_add(x, index, updates, name=None)
    shape(input)
    shard_index(input, index_num, nshards, shard_id, ignore_value=-1)
    slice(input, axes, starts, ends)
    sort(x, axis=-1, descending=False, name=None)
    split(x, num_or_sections, axis=0, name=None)
    squeeze(x, axis=None, name=None)
    squeeze_(x, axis=None, name=None)
    stack(x, axis=0, name=None)
    standard_normal(shape, dtype=None, name=None)
    stanh(x, scale_a=0.67, scale_b=1.7159, name=None)
    std(x, axis=None, unbiased=True, keepdim=False, name=None)
    strided_slice(x, axes, starts, ends, strides, name=None)
    sum(x, axis=None, dtype=None, keepdim=False, name=None)
    t(input, name=None)
    tile(x, repeat_times, name=None)
    topk(x, k, axis=None, largest=True, sorted=True, name=None)
    trace(x, offset=0, axis1=0, axis2=1, name=None)
    transpose(x, perm, name=None)
    tril(x, diagonal=0, name=None)
    triu(x, diagonal=0, name=None)
    unbind(input, axis=0)
    uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None)
    unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None)
    unsqueeze(x, axis, name=None)
    unsqueeze_(x, axis, name=None)
    unstack(x, axis=0, num=None)
    var(x, axis=None, unbiased=True, keepdim=False, name=None)
    where(condition, x, y, name=None)
    zeros(shape, dtype=None, name=None)
    zeros_like(x, dtype=None, name=None)
"""
FUNCTIONAL = """
    adaptive_avg_pool1d(x, output_size, name=None)
    adaptive_avg_pool2d(x, output_size, data_format="NCHW", name=None)
    adaptive_avg_pool3d(x, output_size, data_format="NCDHW", name=None)
    adaptive_max_pool1d(x, output_size, return_mask=False, name=None)
    adaptive_max_pool2d(x, output_size, return_mask=False, name=None)
    adaptive_max_pool3d(x, output_size, return_mask=False, name=None)
    affine_grid(theta, out_shape, align_corners=True, name=None)
    alpha_dropout(x, p=0.5, training=True, name=None)
    avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None)
    avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None)
    avg_pool3d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None)
    batch_norm(x, running_mean, running_var, weight, bias, training=False, momentum=0.9, epsilon=1e-05, data_format="NCHW")
    bilinear(x1, x2, weight, bias=None, name=None)
    binary_cross_entropy(input, label, weight=None, reduction="mean", name=None)
    binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None, name=None)
    conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCL", name=None)
    conv1d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, output_size=None)
    conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW", name=None)
    conv2d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, data_format="NCHW")
    conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCDHW", name=None)
    conv3d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, data_format="NCDHW")
    cosine_similarity(x1, x2, axis=1, eps=1e-8)
    cross_entropy(input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1)
    ctc_loss(log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", norm_by_times=False)
    diag_embed(input, offset=0, dim1=-2, dim2=-1)
    dice_loss(input, label, epsilon=1e-05, name=None)
    dropout(x, p=0.5, axis=None, training=True, mode="upscale_in_train", name=None)
    dropout2d(x, p=0.5, training=True, data_format="NCHW", name=None)
    dropout3d(x, p=0.5, training=True, data_format="NCDHW", name=None)
    elu(x, alpha=1.0, name=None)
    elu_(x, alpha=1.0, name=None)
    embedding(x, weight, padding_idx=None, sparse=False, name=None)
    gather_tree(ids, parents)
    gelu(x, approximate=False, name=None)
    grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True, name=None)
    hardshrink(x, threshold=0.5, name=None)
    hardsigmoid(x, slope=0.1666667, offset=0.5, name=None)
    hardswish(x, name=None)
    hardtanh(x, min=-1.0, max=1.0, name=None)
    hsigmoid_loss(input, label, num_classes, weight, bias=None, path_table=None, path_code=None, is_sparse=False)
    instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.9)
    interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW")
    kl_div(input, label, reduction="mean", name=None)
    l1_loss(input, label, reduction="mean", name=None)
    label_smooth(label, prior_dist=None, epsilon=0.1, name=None)
    layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-05, name=None)
    leaky_relu(x, negative_slope=0.01, name=None)
    linear(x, weight, bias=None, name=None)
    local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0, data_format="NCHW", name=None)
    log_loss(input, label, epsilon=1e-4, name=None)
    log_sigmoid(x, name=None)
    log_softmax(x, axis=-1, dtype=None, name=None)
    margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None)
    max_pool1d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None)
    max_pool2d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCHW", name=None)
    max_pool3d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW", name=None)
    maxout(x, groups, axis=1, name=None)
    mse_loss(input, label, reduction="mean", name=None)
    nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None)
    normalize(x, p=2, axis=1, epsilon=1e-12, name=None)
    npair_loss(anchor, positive, labels, l2_reg=0.002)
    one_hot(x, num_classes, name=None)
    pad(x, pad, mode="constant", value=0.0, data_format="NCHW", name=None)
    pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None)
    prelu(x, weight)
    relu(x, name=None)
    relu6(x, name=None)
    relu_(x, name=None)
    row_conv(input, weight, act=None)
    selu(x, scale, alpha, name=None)
    sigmoid(x, name=None)
    sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None)
    silu(x, name=None)
    smooth_l1_loss(input, label, reduction="mean", delta=1.0, name=None)
    softmax(x, axis=-1, dtype=None, name=None)
    softmax_(x, axis=-1, dtype=None, name=None)
    softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True)
    softplus(x, beta=1, threshold=20, name=None)
    softshrink(x, threshold=0.5, name=None)
    softsign(x, name=None)
    square_error_cost(input, label)
    swish(x, name=None)
    tanh(x, name=None)
    tanhshrink(x, name=None)
    temporal_shift(x, seg_num, shift_ratio=0.25, name=None)
    thresholded_relu(x, threshold=1.0, name=None)
    unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None)
    upsample(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW")
"""
CLASSES = """
    AdaptiveAvgPool3D(output_size, data_format="NCDHW", name=None)
    AdaptiveMaxPool3D(output_size, return_mask=False, name=None)
    AlphaDropout(p=0.5, name=None)
    AvgPool3D(kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None)
    CTCLoss(blank=0, reduction="mean")
    Conv1DTranspose(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
    Conv3D(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros")
    Conv3DTranspose(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1, groups=1)
    Dropout2D(p=0.5, data_format="NCHW", name=None)
    Dropout3D(p=0.5, data_format="NCDHW", name=None)
    HSigmoidLoss(feature_size, num_classes, weight_attr=None, bias_attr=None, is_custom=False, is_sparse=False, name=None)
    KLDivLoss(reduction="mean")
    MarginRankingLoss(margin=0.0, reduction="mean", name=None)
    MaxPool3D(kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW", name=None)
    NLLLoss(weight=None, ignore_index=-100, reduction="mean", name=None)
    Pad3D(padding, mode="constant", value=0.0, data_format="NCDHW", name=None)
    PairwiseDistance(p=2.0, epsilon=1e-6, keepdim=False, name=None)
    ParameterList(parameters=None)
    SmoothL1Loss(reduction="mean", delta=1.0, name=None)
    SyncBatchNorm(num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW", name=None)
"""
# All of paddle.nn that is documented beside those.
OTHER_CLASSES = """AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveMaxPool1D AdaptiveMaxPool2D AvgPool1D AvgPool2D BCELoss
    BCEWithLogitsLoss BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D BeamSearchDecoder BiRNN Bilinear ClipGradByGlobalNorm
    ClipGradByNorm ClipGradByValue Conv1D Conv2D Conv2DTranspose CosineSimilarity CrossEntropyLoss Dropout ELU Embedding
    Flatten GELU GRU GRUCell GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh InstanceNorm1D InstanceNorm2D InstanceNorm3D
    L1Loss LSTM LSTMCell Layer LayerList LayerNorm LeakyReLU Linear LocalResponseNorm LogSigmoid LogSoftmax MSELoss MaxPool1D
    MaxPool2D Maxout MultiHeadAttention PReLU Pad1D Pad2D PixelShuffle RNN RNNCellBase ReLU ReLU6 SELU Sequential Sigmoid Silu
    SimpleRNN SimpleRNNCell Softmax Softplus Softshrink Softsign SpectralNorm Swish Tanh Tanhshrink ThresholdedReLU Transformer
    TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer Upsample UpsamplingBilinear2D
    UpsamplingNearest2D dynamic_decode functional initializer""".split()


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


LISTED = [(paddle, f"{name}(x, name=None)") for name in OF_ONE.split()]
LISTED += [(paddle, f"{name}(x, y, name=None)") for name in OF_TWO.split()]
LISTED += [(paddle, line) for line in lines(FUNCTIONS)] + [(paddle.nn.functional, line) for line in lines(FUNCTIONAL)]
LISTED += [(paddle.nn, line) for line in lines(CLASSES)]


def arguments(line):
    """[(name, default)] of a listed signature; what has none is required."""
    given = ast.parse(f"def {line}: pass").body[0].args
    bare = [inspect.Parameter.empty] * (len(given.args) - len(given.defaults))
    return list(zip([one.arg for one in given.args], bare + [ast.literal_eval(one) for one in given.defaults]))


@pytest.mark.parametrize("module, line", LISTED, ids=[line for _, line in LISTED])
def test_a_listed_name_takes_its_arguments(module, line):
    ours = inspect.signature(getattr(module, line.partition("(")[0])).parameters
    wanted = arguments(line)
    assert list(ours)[:len(wanted)] == [name for name, _ in wanted]
    for name, default in wanted:
        if default is not inspect.Parameter.empty:
            assert ours[name].default == default, name


def test_the_other_classes_are_there():
    assert not [name for name in OTHER_CLASSES if getattr(paddle.nn, name, None) is None]


@pytest.mark.parametrize("name", "linalg math manipulation search creation random logic stat attribute".split())
def test_what_a_module_of_tensor_has_is_in_tensor_too(name):
    module = getattr(paddle.tensor, name)
    public = [one for one in vars(module) if not one.startswith("_") and callable(getattr(module, one))]
    assert not [one for one in public if getattr(paddle.tensor, one, None) is not getattr(module, one)
                and one not in ("to_tensor",)]


@pytest.mark.parametrize("use, words", [
    (lambda: paddle.real(None), "complex numbers are not built"), (lambda: paddle.imag(None), "complex numbers"),
    (lambda: paddle.nn.utils.weight_norm(None), "WeightNormParamAttr"),
    (lambda: paddle.static.nn.multi_box_head(None), "detection is not built")])
def test_what_is_not_built_says_so_when_it_is_used(use, words):
    with pytest.raises(NotBuilt, match=words):
        use()
