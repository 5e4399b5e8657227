"""Kernels for cupy's arrays, in CUDA C: families of ``reference``, under the same names.

    activation, fused, softmax, loss, summing
    convolution, pooling, normalization
    update, unscaling, casting, rank_sums
    rows, sequence, joining

What they are made of:

    compiling       what all sources begin with, and how they are compiled and launched
    gemm            products of many matrices as few calls of cuBLAS
    workspace       memory that kernels need while they run, shared by all
    tables          launches over many arrays
    update_groups   updates of many parameters by one launch

cuDNN is not used: cupy 14 does not reach it. All sums are in an order that follows from the shapes; none is atomic.
"""
