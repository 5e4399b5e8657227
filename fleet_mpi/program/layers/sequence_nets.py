"""Groups of sequence layers that scripts use as one; ``fluid.nets`` gives them their names."""

from fleet_mpi.program.layers.sequence import sequence_conv, sequence_pool


def sequence_conv_pool(input, num_filters, filter_size, param_attr=None, act="sigmoid", pool_type="max",
                       bias_attr=None):
    """A convolution along each sequence, then one row per sequence."""
    convolved = sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return sequence_pool(convolved, pool_type)
