"""``paddle.nn.functional``: layers as functions of variables, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.of_1x import DETECTION as _DETECTION, FUNCTIONAL as _OF_1X
from fleet_mpi.program.layers import manipulation as _manipulation
from fleet_mpi.program.layers import math as _math
from fleet_mpi.program.layers.activation import elu, gelu, relu, selu, sigmoid, silu, softsign, tanh
from fleet_mpi.program.layers.functional_activation import (glu, hardshrink, hardsigmoid, hardswish, hardtanh,
                                                            leaky_relu,
                                                            log_sigmoid, maxout, mish, prelu, relu6, softplus,
                                                            softshrink, swish, tanhshrink, thresholded_relu)
from fleet_mpi.program.layers.functional_dropout import alpha_dropout, dropout, dropout2d, dropout3d
from fleet_mpi.program.layers.functional_images import (affine_grid, bilinear, cosine_similarity, group_norm,
                                                        instance_norm, interpolate, local_response_norm, pad,
                                                        pixel_shuffle, upsample)
from fleet_mpi.program.layers.functional_lines import (adaptive_avg_pool1d, adaptive_max_pool1d, avg_pool1d, conv1d,
                                                       conv1d_transpose, max_pool1d)
from fleet_mpi.program.layers.functional_loss import (binary_cross_entropy, binary_cross_entropy_with_logits,
                                                      cross_entropy, ctc_loss, hsigmoid_loss, kl_div, l1_loss,
                                                      margin_ranking_loss, mse_loss, nll_loss, sigmoid_focal_loss,
                                                      smooth_l1_loss)
from fleet_mpi.program.layers.functional_nn import (adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, batch_norm,
                                                    conv2d, conv2d_transpose, layer_norm, log_softmax, max_pool2d,
                                                    softmax)
from fleet_mpi.program.layers.functional_volumes import (adaptive_avg_pool3d, adaptive_max_pool3d, avg_pool3d, conv3d,
                                                         conv3d_transpose, max_pool3d)
from fleet_mpi.program.layers.given_weights import embedding, linear
from fleet_mpi.program.layers.images import grid_sample, temporal_shift, unfold
from fleet_mpi.program.layers.linear_algebra import diag_embed
from fleet_mpi.program.layers.loss import dice_loss, log_loss, softmax_with_cross_entropy
from fleet_mpi.program.layers.loss import label_smooth as _label_smooth
from fleet_mpi.program.layers.math import square_error_cost
from fleet_mpi.program.layers.sequence import sequence_mask


def one_hot(x, num_classes, name=None):
    """A 1 at each class number, zeros beside it."""
    return _manipulation.one_hot_v2(x, num_classes)


def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    """Labels with a share ``epsilon`` of another distribution."""
    return _label_smooth(label, prior_dist, epsilon, name=name)


def normalize(x, p=2, axis=1, epsilon=1e-12, name=None):
    """x divided by its p-norm along ``axis``, which counts as ``epsilon`` at least."""
    if p == 2:
        return _math.l2_normalize(x, axis, epsilon, name)
    axis = 0 if len(x.shape) == 1 else axis
    return _math.elementwise_div(x, _math.clip(_math.p_norm(x, p, axis, True), epsilon, 3.4e38), name=name)


elu_, relu_, softmax_, tanh_ = elu, relu, softmax, tanh  # static programs have no writing in place


__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

__getattr__ = _missing_name("paddle.nn.functional", globals(), {
    **_OF_1X, **_DETECTION,
    "npair_loss": "fleet_mpi.program.layers.embedding_loss", "row_conv": "fleet_mpi.program.layers.functional_nn",
    "gather_tree": "fleet_mpi.program.layers.beam_search"})
