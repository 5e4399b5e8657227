"""Kernels for host arrays, compiled by numba: families of ``reference``, under the same names.

    activation, fused, softmax, loss, dropout, random, distinct
    convolution, pooling, normalization
    sequence, row_conv, largest, crf, ctc
    rows, slots, row_products, row_squares
    row_index, row_slab, row_draws, partitions
    update, unscaling, summing, shared_sums
    metric, sequence_metric

What they are made of:

    compiling               how every kernel here is compiled and kept
    cache_folder            where, if the usual folders cannot be written to
    elementary              exponential and logarithm that loops can vectorise
    prefetching             cache lines asked for ahead
    columns, depthwise      what ``convolution`` is made of
    normalization_columns   batch norm where the channels lie side by side
"""
