"""Kernels for host arrays, compiled by numba: the families of ``reference``, under the same names.

    compiling               how every kernel here is compiled and kept; ``cache_folder``: where
    elementary              exponential and logarithm that loops can vectorise
    columns, depthwise      what ``convolution`` is made of
    normalization_columns   batch norm where the channels lie side by side
"""
