"""Kernels for cupy's arrays, in CUDA C: families of ``reference``, under the same names.

    compiling   what all sources begin with, and how they are compiled and launched
    update      SGD, momentum and Adam
    rank_sums   sums over ranks
    unscaling   loss scaling
    rows        rows added up by id in order, ids looked at without a wait
    sequence    sums and maxima of ragged sequences
"""
