"""Layers over an index tree: children of nodes, and samples of every layer (tree-based deep models)."""

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant, NumpyArray
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import as_param_attr
from fleet_mpi.program.layers.manipulation import reshape, slice


def tdm_child(x, node_nums, child_nums, param_attr=None, dtype="int32"):
    """(the children of each node, 1 where a child is a leaf), both [..., child_nums]; 0 where there is no child.

    ``param_attr`` gives the tree: for each of ``node_nums`` nodes its item (0 unless it is a leaf), layer, parent and
    children.
    """
    helper = LayerHelper("tdm_child")
    tree = _tree(helper, param_attr, [node_nums, 3 + child_nums], _whole(helper, "dtype", dtype))
    child, mask = (helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(2))
    helper.append_op("tdm_child", {"X": [helper.require(x, "x")], "TreeInfo": [tree]},
                     {"Child": [child], "LeafMask": [mask]}, {"child_nums": child_nums, "dtype": dtype})
    return child, mask


def tdm_sampler(x, neg_samples_num_list, layer_node_num_list, leaf_node_num, tree_travel_attr=None,
                tree_layer_attr=None, output_positive=True, output_list=True, seed=0, tree_dtype="int32",
                dtype="int32"):
    """(samples, labels, masks) of each item: the node of its path in every layer and so many others of the layer.

    Each is a list with [N, samples, 1] for every layer, or without ``output_list`` one variable [N, all samples]. Mask
    is 0 where the tree has no node of the path in a layer. ``tree_travel_attr`` gives the paths [leaves, layers],
    ``tree_layer_attr`` the nodes of all layers one behind the other, both without the root.
    """
    helper = LayerHelper("tdm_sampler")
    _check_layers(neg_samples_num_list, layer_node_num_list, leaf_node_num)
    ends = [0, *np.cumsum(layer_node_num_list).tolist()]
    kind = _whole(helper, "tree_dtype", tree_dtype)
    travel = _tree(helper, tree_travel_attr, [leaf_node_num, len(layer_node_num_list)], kind)
    layer = _tree(helper, tree_layer_attr, [ends[-1], 1], kind)
    _whole(helper, "dtype", dtype)
    made = [helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(3)]
    helper.append_op("tdm_sampler", {"X": [helper.require(x, "x")], "Travel": [travel], "Layer": [layer]},
                     dict(zip(("Out", "Labels", "Mask"), ([one] for one in made))), {
                         "neg_samples_num_list": list(neg_samples_num_list), "layer_offset_lod": ends,
                         "output_positive": output_positive, "seed": seed, "dtype": dtype})
    widths = [count + bool(output_positive) for count in neg_samples_num_list]
    return tuple(_by_layer(one, widths) for one in made) if output_list else tuple(made)


def _by_layer(samples, widths):
    """The columns of each layer, [N, columns, 1]."""
    ends = np.cumsum(widths).tolist()
    parts = [reshape(slice(samples, axes=[1], starts=[end - width], ends=[end]), [-1, width, 1])
             for end, width in zip(ends, widths)]
    for part in parts:
        part.stop_gradient = True
    return parts


def _check_layers(counts, nodes, leaves):
    if len(counts) != len(nodes):
        raise UsageError(f"tdm_sampler: expected a number of negative samples for each of the {len(nodes)} layers of "
                         f"layer_node_num_list, got neg_samples_num_list={list(counts)}")
    for number, (count, most) in enumerate(zip(counts, nodes)):
        if not 0 <= count < most:
            raise UsageError(f"tdm_sampler: layer {number} has {most} nodes: expected 0 to {most - 1} negative "
                             f"samples, got neg_samples_num_list[{number}]={count}")
    if leaves is None or not 0 < leaves < sum(nodes):
        raise UsageError(f"tdm_sampler: leaf_node_num: expected fewer leaves than the {sum(nodes)} nodes of all "
                         f"layers, got {leaves!r}")


def _whole(helper, argument, dtype):
    """The dtype, if it is one of those that the original takes."""
    if np.dtype(dtype).name not in ("int32", "int64"):
        raise UsageError(f"{helper.layer_type}: {argument}: expected 'int32' or 'int64', got {dtype!r}")
    return dtype


def _tree(helper, attr, shape, dtype):
    """A parameter that is neither trained nor averaged; an array of as many numbers is laid out as it must be."""
    attr = as_param_attr(attr).with_name(None)
    attr.trainable = attr.do_model_average = False
    given = attr.initializer
    if isinstance(given, NumpyArray) and given.value.size == np.prod(shape):
        attr.initializer = NumpyArray(given.value.reshape(shape))
    made = helper.create_parameter(attr, shape, dtype, default_initializer=Constant(0))
    made.stop_gradient = True
    return made
