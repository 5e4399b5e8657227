"""``fluid.layers``: all layers of 1.x, also by the module of the original they come from."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.layers import (collective, control_flow, detection, device, io, learning_rate_scheduler, loss,
                                    metric_op, nn, ops, rnn, sequence_lod, tensor)
from fleet_mpi.fluid.layers.control_flow import (Assert, ConditionalBlock, ParallelDo, Print, Switch, While,
                                                 array_length, array_read, array_write, case, cond, create_array,
                                                 equal, greater_equal, greater_than, increment, is_empty, less_equal,
                                                 less_than, not_equal, switch_case, while_loop)
from fleet_mpi.fluid.layers.device import get_places
from fleet_mpi.fluid.layers.io import create_py_reader_by_data, data, double_buffer, load, py_reader, read_file
from fleet_mpi.fluid.layers.learning_rate_scheduler import (cosine_decay, exponential_decay, inverse_time_decay,
                                                            linear_lr_warmup, natural_exp_decay, noam_decay,
                                                            piecewise_decay, polynomial_decay)
from fleet_mpi.fluid.layers.loss import (bpr_loss, cross_entropy, dice_loss, huber_loss, kldiv_loss, label_smooth,
                                         log_loss, margin_rank_loss, mse_loss, rank_loss,
                                         sigmoid_cross_entropy_with_logits, smooth_l1, softmax_with_cross_entropy,
                                         square_error_cost)
from fleet_mpi.fluid.layers.metric_op import accuracy, auc
from fleet_mpi.fluid.layers.nn import (adaptive_pool2d, adaptive_pool3d, autoincreased_step_counter, batch_norm,
                                       brelu, clip, clip_by_norm, conv2d, conv2d_transpose, conv3d, conv3d_transpose,
                                       cos_sim, cumsum, dropout, elementwise_add, elementwise_div,
                                       elementwise_floordiv, elementwise_max, elementwise_min, elementwise_mod,
                                       elementwise_mul, elementwise_pow, elementwise_sub, elu, embedding, expand,
                                       expand_as, fc, flatten, gather, gather_nd, gaussian_random,
                                       gaussian_random_batch_size_like, hard_sigmoid, hard_swish, l2_normalize,
                                       layer_norm, leaky_relu, lod_append, lod_reset, log_softmax, logical_and,
                                       logical_not, logical_or, logical_xor, matmul, mean, mul, one_hot, pad, pad2d,
                                       pool2d, pool3d, pow, prelu, py_func, reduce_all, reduce_any, reduce_max,
                                       reduce_mean, reduce_min, reduce_prod, reduce_sum, relu, relu6, reshape, scale,
                                       scatter, selu, shape, shard_index, silu, size, slice, soft_relu, softmax,
                                       split, squeeze, stack, stanh, strided_slice, sum, swish, topk, transpose,
                                       uniform_random, uniform_random_batch_size_like, unique, unsqueeze, unstack,
                                       where)
from fleet_mpi.fluid.layers.nn import mish
from fleet_mpi.fluid.layers.ops import (abs, acos, asin, atan, ceil, cos, cosh, erf, exp, floor, gelu, hard_shrink,
                                        log, logsigmoid, reciprocal, round, rsqrt, sigmoid, sign, sin, sinh, softplus,
                                        softshrink, softsign, sqrt, square, tan, tanh, tanh_shrink, thresholded_relu)
from fleet_mpi.fluid.layers.ops import log1p
from fleet_mpi.fluid.layers.rnn import beam_search, beam_search_decode, dynamic_gru, dynamic_lstm, gru_unit, lstm_unit
from fleet_mpi.fluid.layers.sequence_lod import (sequence_concat, sequence_conv, sequence_enumerate, sequence_expand,
                                                 sequence_expand_as, sequence_first_step, sequence_last_step,
                                                 sequence_mask, sequence_pad, sequence_pool, sequence_reshape,
                                                 sequence_reverse, sequence_scatter, sequence_slice, sequence_softmax,
                                                 sequence_unpad)
from fleet_mpi.fluid.layers.tensor import (argmax, argmin, argsort, assign, cast, concat, create_global_var,
                                           create_parameter, create_tensor, diag, eye, fill_constant,
                                           fill_constant_batch_size_like, has_inf, has_nan, isfinite, linspace, ones,
                                           ones_like, range, reverse, sums, zeros, zeros_like)
from fleet_mpi.fluid.layers.tensor import randperm

_LATE = {**{name: f"fleet_mpi.fluid.layers.{name}" for name in ("layer_function_generator", "math_op_patch", "utils")},
         **control_flow._LATE, **rnn._LATE, **tensor._LATE, **nn._LATE, **loss._LATE,
         **dict.fromkeys(("distributions", "Categorical", "MultivariateNormalDiag", "Normal", "Uniform"),
                         "fleet_mpi.fluid.layers.distributions")}

from fleet_mpi.program.layers.recurrent import rnn  # noqa: E402  (as in the original, the function hides the module)

_REFUSED = {**detection.REFUSED, "_pull_box_sparse": "box-ps is not built; take embedding with is_sparse=True"}

__getattr__ = _missing_name("paddle.fluid.layers", globals(), _LATE, _REFUSED)
