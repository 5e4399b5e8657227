"""Nodes of an index tree, for models that retrieve by walking it: children, and samples of every layer.

Node 0 is the root, and stands for no node where a child or a node of a path is asked for.
"""

import numpy as np

from fleet_mpi.kernels.reference import random
from fleet_mpi.kernels.reference.distinct import distinct_numbers
from fleet_mpi.program.engine.outside import Check, id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.ops.drawing import drawn
from fleet_mpi.program.ops.manipulation import product

ITEM, FIRST_CHILD = 0, 3  # columns of TreeInfo: item, layer, parent, children


def _require_whole_numbers(k, *slots):
    for slot in slots:
        if k.dtype(slot).kind not in "iu":
            k.fail(f"{slot}: expected whole numbers, got {k.dtype(slot)}")


@op("tdm_child", "X TreeInfo", "Child LeafMask", attrs={"child_nums": 2, "dtype": "int32"}, no_grad="X TreeInfo")
class TdmChild:
    """The children of each node, 0 where there are fewer; LeafMask is 1 where a child is a leaf (has an item)."""

    def infer(k):
        """One dimension more than X, the children."""
        count, info = k.attr("child_nums"), k.shape("TreeInfo")
        _require_whole_numbers(k, "X", "TreeInfo")
        if count < 1 or len(info) != 2 or info[1] != FIRST_CHILD + count:
            k.fail(f"expected child_nums from 1 up and TreeInfo [nodes, {FIRST_CHILD} + child_nums] (item, layer, "
                   f"parent, children), got {count} and {list(info)}")
        for slot in ("Child", "LeafMask"):
            k.set(slot, [*k.shape("X"), count], as_dtype(k.attr("dtype")), lod=k.lod("X"))

    def run(k):
        """The rows of the nodes, and of their children."""
        x, child, mask, xp = k["X"], k["Child"], k["LeafMask"], k.xp
        items, children = k["TreeInfo"][:, ITEM], k["TreeInfo"][:, FIRST_CHILD:]
        check, check_children = (id_check(k, len(items), what) for what in ("the tree", "the tree, as a child,"))

        def run():
            check(x)
            found = children[x]
            has_children = (x != 0) & (found[..., 0] != 0)  # as in the original, the root is asked for as padding
            found = xp.where(has_children[..., None], found, 0)
            check_children(found)
            xp.copyto(child, found, casting="same_kind")
            xp.copyto(mask, items[found] != 0, casting="unsafe")
        return run


@op("tdm_sampler", "X Travel Layer", "Out Labels? Mask", no_grad="X Travel Layer",
    attrs={"neg_samples_num_list": [], "layer_offset_lod": [], "output_positive": True, "seed": 0, "dtype": "int32"})
class TdmSampler:
    """For each item, layer by layer: the node on its path (``Travel``), and others of the layer, drawn without it.

    Labels are 1 for nodes on the path. Where an unbalanced tree has no node on a path (0), all of that layer is 0,
    Mask too, which is 1 elsewhere. Layer lists the nodes of all layers, cut by ``layer_offset_lod``.
    """

    def infer(k):
        """A row per item, a column per sample."""
        _require_whole_numbers(k, "X", "Travel", "Layer")
        layers, x = _layers(k), k.shape("X")
        if product(x[1:]) != 1:
            k.fail(f"expected an item in each row of X, [N, 1], got {list(x)}")
        if len(k.shape("Travel")) != 2 or k.shape("Travel")[1] != len(layers):
            k.fail(f"expected Travel [leaves, {len(layers)}], a node of each layer, got {list(k.shape('Travel'))}")
        if product(k.shape("Layer")) != layers[-1].last:
            k.fail(f"expected Layer with {layers[-1].last} nodes, got {list(k.shape('Layer'))}")
        for slot in ("Out", "Labels", "Mask"):
            k.set(slot, [x[0], layers[-1].end], as_dtype(k.attr("dtype")), lod=())

    def run(k):
        """One draw for all layers, then each layer's columns."""
        x, travel, nodes, xp = k["X"].reshape(-1), k["Travel"], k["Layer"].reshape(-1), k.xp
        layers, out = _layers(k), k["Out"]
        labels, mask = (k[slot] if k.has(slot) else k.scratch(out.shape, out.dtype) for slot in ("Labels", "Mask"))
        words = k.scratch((sum(layer.count for layer in layers), len(x)), "uint32")
        numbers, distinct = k.scratch(words.shape, np.int64), distinct_numbers.pick(words)
        draw, check = drawn(k, words, random.random_bits), id_check(k, travel.shape[0], "the tree's leaves")
        check_path = Check(k, 1, lambda wrong, position: (
            f"Travel says that node {wrong} is on the path of item {position // len(layers)} of X, in layer "
            f"{position % len(layers)}: it is not of that layer by layer_offset_lod {k.attr('layer_offset_lod')}"))

        def run():
            check(x)
            draw()
            path = travel[x]
            check_path(_strangers(xp, path, layers))
            labels.fill(0)
            for number, layer in enumerate(layers):
                positive = path[:, number]
                distinct(words[layer.drawn], layer.last - layer.first - 1, numbers[layer.drawn])
                layer.fill(xp, positive, nodes, numbers[layer.drawn].T, out)
                is_there = positive != 0
                mask[:, layer.begin:layer.end] = is_there[:, None]
                out[:, layer.begin:layer.end] *= mask[:, layer.begin:layer.end]
                if layer.own:
                    labels[:, layer.begin] = is_there
        return run


class _Layer:
    """One layer: its nodes from ``first`` to ``last``, its columns from ``begin`` to ``end``, ``own`` of the path."""

    def __init__(self, first, last, count, own, begin, drawn_before):
        self.first, self.last, self.count, self.own = first, last, count, own
        self.begin, self.end = begin, begin + own + count
        self.drawn = slice(drawn_before, drawn_before + count)

    def fill(self, xp, positive, nodes, places, out):
        """The node on the path, then those at the drawn places.

        Drawn are all places but the last, whose node stands in for the node on the path: so each of the others has
        one place.
        """
        if self.own:
            out[:, self.begin] = positive
        found = nodes[places + self.first]
        out[:, self.begin + self.own:self.end] = xp.where(found == positive[:, None], nodes[self.last - 1], found)


def _layers(k):
    ends, counts, own = (k.attr(name) for name in ("layer_offset_lod", "neg_samples_num_list", "output_positive"))
    if len(ends) != len(counts) + 1 or not counts or ends[0] != 0:
        k.fail(f"expected layer_offset_lod from 0 on, a number more than neg_samples_num_list, got {list(ends)} and "
               f"{list(counts)}")
    layers = []
    for number, (first, last, count) in enumerate(zip(ends, ends[1:], counts)):
        if not 0 <= count < last - first:
            k.fail(f"neg_samples_num_list: layer {number} has {last - first} nodes: expected 0 to {last - first - 1} "
                   f"negative samples, got {count}")
        layers.append(_Layer(first, last, count, int(bool(own)), layers[-1].end if layers else 0, sum(counts[:number])))
    return layers


def _strangers(xp, path, layers):
    """The nodes of a path that are not of their layer; 0 elsewhere. Nodes are numbered through all layers from 1 on.

    As in the original, the number before a layer's first passes.
    """
    return xp.stack([xp.where((path[:, i] == 0) | (path[:, i] >= layer.first) & (path[:, i] <= layer.last), 0,
                              path[:, i]) for i, layer in enumerate(layers)], axis=1)
