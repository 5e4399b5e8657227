"""The ops, by family; a family is imported when one of its ops is first asked for (``graph/registry``).

Arithmetic:

    activation              functions of one variable, element by element
    elementwise             functions of two variables, element by element
    comparison              comparisons and logic
    scaling                 scale, cast, clip, norms, running sums, cosine similarity
    reduction               sums, means, products and extremes over dimensions
    combining               sum, assign, concat, split, stack: any number of variables
    matrix                  matrix products
    tensor_products         bilinear products, einsum, position encoding
    linear_algebra          inverse, cholesky, kron, cross
    diagonals               trace, diag_embed, diag
    histogram               counts by interval

Shapes and places:

    filling                 constants, ranges, shapes
    drawing                 random numbers
    manipulation            reshape, squeeze, flatten, transpose, reverse, roll
    stretching              expand, tile, pad
    borders                 pad3d
    rearranging             channels, pixels and time steps moved; crop, triangles, meshgrid
    indexing                slice, gather, scatter, one_hot, where
    positions               scattered additions, masks, distinct elements, multinomial draws
    sorting                 argmax, argsort, top_k, median
    variable_arguments      arguments that are attributes or variables

Networks:

    convolution             convolution and its transpose
    deformable              deformable convolution
    pooling                 maximum and average pooling
    normalization           batch norm, layer norm
    group_normalization     group, instance, spectral and local response norm
    dropout                 dropout
    softmax                 softmax, its logarithm, cross entropy of logits
    patches                 unfold, im2sequence
    sampling_grids          affine grids, grid sampling, resizing
    cubic_resizing          bicubic resizing
    fused                   two ops in one, put into plans only
    widening                float32 copies of float16 variables on a host

Losses:

    loss                    losses of probabilities and of single logits
    difference_loss         Huber, smooth L1, ranking, divergence; label smoothing
    likelihood_loss         negative log likelihood
    class_centers           center loss
    nce                     noise contrastive estimation
    hierarchical_sigmoid    classes as leaves of a tree
    sampled_logits          sampled softmax
    class_rows              logits of a few classes, for ``nce`` and ``hierarchical_sigmoid``
    class_sampling          how negative classes are drawn

Tables and click models:

    embedding               rows of a table by id
    sparse_table            tables that grow, for any 64-bit id
    click                   data_norm, cvm, filtering by tag, hash
    batch_parts             shuffle_batch, partial_concat, partial_sum
    rank_attention          attention by rank within a page view
    tree_nodes              nodes of an index tree: children, samples of every layer

Texts and trees:

    matching                texts matched word by word: images of pairs, averages of their largest numbers
    image_convolution       convolution over images of any size
    tree_convolution        convolution over trees

Sequences (LoD):

    sequence                pooling and softmax within each sequence
    sequence_conv           convolution along sequences
    row_conv                lookahead convolution
    sequence_rows           expand, concat, reverse, slice
    sequence_shape          pad, unpad, mask, reshape, lod_reset
    sequence_ids            enumerate, erase, scatter
    sequence_spans          the rows of each sequence, by LoD or by lengths
    crf                     linear-chain conditional random fields
    ctc                     connectionist temporal classification
    beam_search             beam search steps and their sentences

Recurrence:

    recurrent               what the recurrent ops share
    lstm                    long short-term memory
    projected_lstm          the same with a projected state
    gru                     gated recurrent units
    recurrence              a body for every step of equally long sequences
    lod_rank                sequences cut into steps, longest first (DynamicRNN)

Control flow and the host:

    control_flow            conditional blocks, while, assert
    nested_gradients        gradients of bodies
    splitting               rows parted by a mask (IfElse)
    tensor_array            lists of tensors
    array_joining           lists of tensors to one tensor; gather_tree
    host_calls              print, py_func
    feed_fetch              feed and fetch in saved programs

Updates:

    optimize                the optimizers
    row_totals              what they take on a device in the place of merged rows
    clipping                gradient clipping; rows merged by id
    averaging               averages of parameters
    loss_scaling            finite gradients, the next scale
    schedules               learning-rate schedules in one call
    schedule_formula        numbers as functions of other numbers, for ``schedules``

Metrics:

    metric                  accuracy, auc, mean_iou
    sequence_metric         edit distance, chunks
"""

# The op types that each family enters, gradients apart.
FAMILIES = {
    "activation": (
        "relu sigmoid logsigmoid tanh tanh_shrink exp log log2 log10 log1p sqrt rsqrt square reciprocal abs sign "
        "floor ceil round sin cos tan asin acos atan sinh cosh erf softsign relu6 brelu leaky_relu elu selu "
        "hard_sigmoid stanh softshrink hard_shrink thresholded_relu soft_relu swish silu softplus mish hard_swish "
        "gelu pow prelu"),
    "array_joining": "tensor_array_to_tensor tensor_array_to_tensor_grad gather_tree",
    "averaging": "ema_decay ema_update ema_value average_accumulates average_value",
    "batch_parts": "shuffle_batch partial_concat partial_sum",
    "beam_search": "beam_search beam_search_decode",
    "borders": "pad3d",
    "class_centers": "center_loss",
    "click": "data_norm cvm filter_by_instag hash",
    "clipping": "merge_selected_rows squared_l2_norm global_norm_scale multiply_by_scale clip_by_norm clip_rows",
    "combining": "sum assign concat split stack unstack",
    "comparison": (
        "less_than less_equal greater_than greater_equal equal not_equal logical_and logical_or logical_xor "
        "isnan_v2 isinf_v2 isfinite_v2 logical_not isnan isinf isfinite equal_all is_empty allclose"),
    "control_flow": "conditional_block while assert",
    "convolution": "conv2d depthwise_conv2d conv3d conv2d_transpose depthwise_conv2d_transpose conv3d_transpose",
    "crf": "linear_chain_crf crf_decoding",
    "ctc": "warpctc ctc_align",
    "cubic_resizing": "bicubic_interp",
    "deformable": "deformable_conv deformable_conv_v1",
    "diagonals": "trace diag_embed diag_v2",
    "difference_loss": "huber_loss smooth_l1_loss rank_loss margin_rank_loss kldiv_loss label_smooth bpr_loss",
    "drawing": (
        "uniform_random uniform_random_batch_size_like gaussian_random gaussian_random_batch_size_like "
        "truncated_gaussian_random randint bernoulli randperm"),
    "dropout": "dropout alpha_dropout",
    "elementwise": (
        "elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min "
        "elementwise_pow elementwise_mod elementwise_floordiv"),
    "embedding": "lookup_table lookup_table_v2",
    "feed_fetch": "feed fetch",
    "filling": (
        "fill_constant fill_constant_batch_size_like fill_any_like fill_zeros_like assign_value shape size range "
        "linspace eye diag"),
    "fused": "fused_elemwise_activation cast_all",
    "group_normalization": "group_norm instance_norm lrn spectral_norm",
    "gru": "gru gru_unit",
    "hierarchical_sigmoid": "hierarchical_sigmoid",
    "histogram": "histogram",
    "host_calls": "print py_func",
    "image_convolution": "var_conv_2d",
    "indexing": (
        "slice strided_slice gather gather_nd scatter one_hot one_hot_v2 shard_index where where_index unique"),
    "likelihood_loss": "nll_loss",
    "linear_algebra": "inverse cholesky kron cross",
    "lod_rank": (
        "lod_rank_table max_sequence_len lod_tensor_to_array lod_tensor_to_array_grad array_to_lod_tensor "
        "array_to_lod_tensor_grad shrink_rnn_memory shrink_rnn_memory_grad reorder_lod_tensor_by_rank "
        "reorder_lod_tensor_by_rank_grad"),
    "loss": "cross_entropy2 cross_entropy log_loss sigmoid_cross_entropy_with_logits teacher_student_sigmoid_loss",
    "loss_scaling": "check_finite_and_unscale update_loss_scaling",
    "lstm": "lstm lstm_unit",
    "manipulation": (
        "reshape reshape2 squeeze squeeze2 unsqueeze unsqueeze2 flatten flatten2 flatten_contiguous_range transpose "
        "transpose2 reverse flip roll"),
    "matching": "match_matrix_tensor sequence_topk_avg_pooling",
    "matrix": "mul matmul matmul_v2 bmm dot",
    "metric": "accuracy auc mean_iou",
    "nce": "nce",
    "nested_gradients": "conditional_block_grad while_grad",
    "normalization": "batch_norm fused_batch_norm_act layer_norm",
    "optimize": (
        "sgd momentum lars_momentum adagrad decayed_adagrad adam adamw adamax adadelta rmsprop ftrl lamb dpsgd "
        "dgc_momentum"),
    "patches": "unfold im2sequence",
    "pooling": "pool2d pool3d",
    "positions": (
        "scatter_nd_add index_sample masked_select unique_sorted unique_with_counts multinomial "
        "get_tensor_from_selected_rows similarity_focus"),
    "projected_lstm": "lstmp",
    "rank_attention": "rank_attention",
    "rearranging": (
        "shuffle_channel space_to_depth pixel_shuffle temporal_shift maxout multiplex pad_constant_like crop "
        "crop_tensor random_crop tril_triu meshgrid"),
    "recurrence": "recurrent recurrent_grad",
    "reduction": "mean reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all reduce_any",
    "row_conv": "row_conv",
    "sampled_logits": "sample_logits sampling_id",
    "sampling_grids": "affine_grid grid_sampler linear_interp bilinear_interp trilinear_interp nearest_interp",
    "scaling": "scale increment cast clip norm p_norm cumsum minus cos_sim",
    "schedules": "fused_schedule",
    "sequence": "sequence_pool sequence_softmax",
    "sequence_conv": "sequence_conv",
    "sequence_ids": "sequence_enumerate sequence_erase sequence_scatter",
    "sequence_metric": "edit_distance chunk_eval",
    "sequence_rows": "sequence_expand sequence_expand_as sequence_concat sequence_reverse sequence_slice",
    "sequence_shape": "sequence_pad sequence_unpad sequence_mask sequence_reshape lod_reset",
    "softmax": "softmax log_softmax softmax_with_cross_entropy",
    "sorting": "arg_max arg_min argsort top_k top_k_v2 median",
    "sparse_table": "sparse_table_lookup",
    "splitting": "split_lod_tensor split_lod_tensor_grad merge_lod_tensor merge_lod_tensor_grad",
    "stretching": "expand tile expand_v2 expand_as expand_as_v2 pad pad2d",
    "tensor_array": (
        "empty_array write_to_array write_to_array_grad read_from_array read_from_array_grad lod_array_length"),
    "tensor_products": "bilinear_tensor_product einsum add_position_encoding",
    "tree_convolution": "tree_conv",
    "tree_nodes": "tdm_child tdm_sampler",
}
FAMILY_OF = {type: family for family, types in FAMILIES.items() for type in types.split()}
