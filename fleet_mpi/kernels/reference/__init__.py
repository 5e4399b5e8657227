"""Kernels as plain functions of arrays, one file per family; what the versions in ``numba`` and ``cuda`` must equal.

Elements and networks:

    activation          passes that numpy lacks: relu backward, sigmoid, erf
    fused               sums followed by relu
    softmax             softmax, its logarithm, cross entropy of logits
    loss                losses of probabilities and of single logits
    dropout             a mask applied
    random              random draws by counter
    distinct            draws without replacement
    convolution         over two or three dimensions, with gradients
    pooling             maximum and average
    normalization       batch norm and layer norm

Sequences:

    sequence            rows of ragged sequences: moves, pools, softmax, windows
    row_conv            lookahead convolution
    largest             places of the largest in lines of any length
    crf                 linear-chain conditional random fields
    ctc                 connectionist temporal classification

Tables:

    rows                gather, scatter, and sums of rows with the same id
    slots               tables that grow: the row of any 64-bit id
    partitions          which server has the row of any 64-bit id
    row_index           growing tables: the slot of any 64-bit id, in an index that grows in shares
    row_slab            growing tables: copies and update rules on rows by slot
    row_draws           growing tables: first values of many rows
    row_products        products with rows chosen by id
    row_squares         sums of squares over some rows
    xxhash              XXH64 of ids

Updates and sums:

    update              the optimizers
    unscaling           loss scaling
    casting             casts of many arrays
    joining             arrays put together along an axis, and parted
    summing             sums of everything, of rows, of channels
    rank_sums           sums over ranks in rank order
    shared_sums         sums over rows in shared memory

Metrics:

    metric              hits, histograms, area under the ROC curve
    sequence_metric     edit distances, chunks

Import kernels from here: calling one runs the version for its first argument's kind of array.
"""
