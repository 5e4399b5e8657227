"""The ops, by family; importing this package enters all of them in the op table.

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
    clipping                gradient clipping; rows merged by id
    averaging               averages of parameters
    loss_scaling            finite gradients, the next scale
    schedules               learning-rate schedules in one call
    schedule_formula        numbers as functions of other numbers, for ``schedules``

Metrics:

    metric                  accuracy, auc, mean_iou
    sequence_metric         edit distance, chunks
"""

import importlib
import pkgutil

for _family in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_family.name}")
