"""``fluid.layers.nn``: the layers of networks, and most others."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.activation import (brelu, elu, hard_sigmoid, hard_swish, leaky_relu, mish, prelu, relu,
                                                 relu6, selu, silu, soft_relu, stanh, swish)
from fleet_mpi.program.layers.comparison import logical_and, logical_not, logical_or, logical_xor
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.host_calls import py_func
from fleet_mpi.program.layers.loss import dice_loss, label_smooth, log_loss, smooth_l1
from fleet_mpi.program.layers.manipulation import (expand, expand_as, flatten, gather, gather_nd, one_hot, pad, pad2d,
                                                   reshape, scatter, shard_index, slice, split, squeeze, stack,
                                                   strided_slice, topk, transpose, unique, unsqueeze, unstack, where)
from fleet_mpi.program.layers.math import (clip, clip_by_norm, cos_sim, cumsum, elementwise_add, elementwise_div,
                                           elementwise_floordiv, elementwise_max, elementwise_min, elementwise_mod,
                                           elementwise_mul, elementwise_pow, elementwise_sub, l2_normalize, matmul,
                                           mul, pow, scale, sum)
from fleet_mpi.program.layers.nn import (adaptive_pool2d, adaptive_pool3d, batch_norm, conv2d, conv2d_transpose,
                                         conv3d, conv3d_transpose, dropout, layer_norm, log_softmax, pool2d, pool3d,
                                         softmax)
from fleet_mpi.program.layers.reduction import (mean, reduce_all, reduce_any, reduce_max, reduce_mean, reduce_min,
                                                reduce_prod, reduce_sum)
from fleet_mpi.program.layers.sequence import lod_append, lod_reset
from fleet_mpi.program.layers.tensor import (gaussian_random, gaussian_random_batch_size_like, shape, size,
                                             uniform_random, uniform_random_batch_size_like)
from fleet_mpi.program.build.schedules import autoincreased_step_counter

_LATE = {"_elementwise_op": "fleet_mpi.program.layers.generated:elementwise_of",
         "row_conv": "fleet_mpi.program.layers.sequence", "unbind": "fleet_mpi.program.layers.functional_tensor",
         "unique_with_counts": "fleet_mpi.program.layers.positions",
         "gather_tree": "fleet_mpi.program.layers.beam_search", "mean_iou": "fleet_mpi.program.layers.metric",
         "sampling_id": "fleet_mpi.program.layers.sampled_loss",
         **dict.fromkeys(("chunk_eval", "crf_decoding", "ctc_greedy_decoder", "linear_chain_crf"),
                         "fleet_mpi.program.layers.sequence_labels"),
         **dict.fromkeys(("continuous_value_model", "data_norm", "filter_by_instag", "hash"),
                         "fleet_mpi.program.layers.click"),
         **dict.fromkeys(("affine_grid", "deformable_conv", "grid_sampler", "im2sequence", "image_resize",
                          "image_resize_short", "maxout", "pixel_shuffle", "random_crop", "resize_bilinear",
                          "resize_linear", "resize_nearest", "resize_trilinear", "shuffle_channel",
                          "similarity_focus", "space_to_depth", "temporal_shift", "unfold"),
                         "fleet_mpi.program.layers.images"),
         **dict.fromkeys(("affine_channel", "group_norm", "inplace_abn", "instance_norm", "lrn", "spectral_norm"),
                         "fleet_mpi.program.layers.normalization"),
         **dict.fromkeys(("crop", "crop_tensor", "get_tensor_from_selected_rows", "merge_selected_rows",
                          "multiplex", "pad_constant_like", "rank", "scatter_nd", "scatter_nd_add"),
                         "fleet_mpi.program.layers.positions"),
         **dict.fromkeys(("add_position_encoding", "bilinear_tensor_product", "fsp_matrix"),
                         "fleet_mpi.program.layers.tensor_products")}

__getattr__ = _missing_name("paddle.fluid.layers.nn", globals(), _LATE)
