"""Converters to ONNX: one function per op, in a file per family.

    activation      functions of one variable: by ONNX's own op, or by the op's formula
    elementwise     arithmetic and comparison of two variables
    matrix          products of matrices
    convolution     convolution, transposed convolution, pooling
    normalization   batch, layer, instance and group normalisation; softmax, dropout
    reduction       sums, means and extremes; positions of extremes, sorting
    shaping         other shapes and orders of the same elements
    joining         concat, split, stack
    picking         embeddings, slices, gather, one_hot, where
    making          constants, shapes, casts, scaling, clipping
    repeating       expand, tile, padding
    sequence        pooling of sequences by their offsets

A converter takes a Step and puts the outputs of its op. What attributes mean is asked of the op's own family in
``program/ops``. A new converter is a function and its line in the family's ``CONVERTERS``.
"""

from fleet_mpi.export.onnx_ops import (
    activation,
    convolution,
    elementwise,
    joining,
    making,
    matrix,
    normalization,
    picking,
    reduction,
    repeating,
    sequence,
    shaping,
)

_FAMILIES = (activation, convolution, elementwise, joining, making, matrix, normalization, picking, reduction,
             repeating, sequence, shaping)
# {type of op: function of a Step}
CONVERTERS = {type: convert for family in _FAMILIES for type, convert in family.CONVERTERS.items()}
