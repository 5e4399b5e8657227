"""Which kinds of element the inputs of ops must have: checked when an op is added, as the original's layers do.

Only what its layers refuse stands here; other mismatches are for the ops' shape rules.
"""

from fleet_mpi.errors import ProgramError

_WORDS = {"f": "floating-point numbers", "iu": "whole numbers"}

# Functions of one variable; abs, exp and square take whole numbers too, as their kernels for CPUs do.
_ACTIVATIONS = """acos asin atan brelu ceil cos cosh elu erf floor gelu hard_shrink hard_sigmoid hard_swish leaky_relu
    log log_softmax logsigmoid prelu reciprocal relu relu6 round rsqrt selu sigmoid sin sinh soft_relu softmax softplus
    softshrink softsign sqrt stanh swish tanh tanh_shrink thresholded_relu""".split()
_X = """cross_entropy cross_entropy2 dropout group_norm instance_norm layer_norm batch_norm matmul mean mul pool2d
    pool3d sigmoid_cross_entropy_with_logits""".split()

KINDS = {
    **dict.fromkeys(_ACTIVATIONS + _X, {"X": "f"}),
    **dict.fromkeys(("conv2d", "conv2d_transpose", "conv3d", "depthwise_conv2d"), {"Input": "f"}),
    "softmax_with_cross_entropy": {"Logits": "f"},
    **dict.fromkeys(("lookup_table", "lookup_table_v2"), {"Ids": "iu", "W": "f"}),
    **dict.fromkeys(("read_from_array", "write_to_array"), {"I": "iu"}),
    **dict.fromkeys(("one_hot", "one_hot_v2"), {"X": "iu"}),
    **dict.fromkeys(("gather", "gather_nd"), {"Index": "iu"}),
    "scatter": {"Ids": "iu"},
    "accuracy": {"Out": "f", "Label": "iu"},
    "auc": {"Predict": "f", "Label": "iu"},
}


def check(op):
    """ProgramError where an input of an op has elements of a kind that the original's layers refuse."""
    for slot, kinds in KINDS.get(op.type, {}).items():
        for name in op.inputs.get(slot, ()):
            var = op.block.find_var(name)
            if var is not None and var._dtype is not None and var._dtype.kind not in kinds:
                raise ProgramError(f"{op}: {slot} must hold {_WORDS[kinds]}, got {name!r} of {var._dtype.name}; "
                                   f"layers.cast makes the one of the other")
