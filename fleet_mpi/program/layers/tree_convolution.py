"""The layer that convolves over trees."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper


def tree_conv(nodes_vector, edge_set, output_size, num_filters=1, max_depth=2, act="tanh", param_attr=None,
              bias_attr=None, name=None):
    """act of each node with those below it, down to ``max_depth`` levels, times one matrix, plus a bias.

    [N, nodes, output_size, num_filters] of ``nodes_vector`` [N, nodes, columns] and ``edge_set`` [N, edges, 2]: pairs
    [parent, child] of nodes counted from 1 on, 0 for padding.
    """
    helper = LayerHelper("tree_conv", act=act, bias_attr=bias_attr, name=name)
    nodes, edges = helper.require(nodes_vector, "nodes_vector"), helper.require(edge_set, "edge_set")
    if len(nodes.shape) != 3:
        raise UsageError(f"tree_conv: nodes_vector: expected [N, nodes, columns], got {list(nodes.shape)}")
    weight = helper.create_parameter(param_attr, [nodes.shape[2], 3, output_size, num_filters], nodes.dtype)
    out = helper.create_variable_for_type_inference(nodes.dtype)
    helper.append_op("tree_conv", {"NodesVector": [nodes], "EdgeSet": [edges], "Filter": [weight]}, {"Out": [out]},
                     {"max_depth": max_depth})
    return helper.append_activation(helper.append_bias_op(out))
