"""Convolution over trees: every node with those below it, down to a depth, times one matrix.

A node that stands d levels below the root of a window of D levels weighs top = 1 - d / D; what is left of 1 is shared
between left and right by its place among its siblings. The window is these three sums of features, side by side.
"""

import numpy as np

from fleet_mpi.kernels.products import product
from fleet_mpi.kernels.reference import rows as row_kernels, sequence as kernels
from fleet_mpi.program.engine.outside import Check
from fleet_mpi.program.graph.registry import op


@op("tree_conv", "NodesVector EdgeSet Filter", attrs={"max_depth": 2}, grad_reads="NodesVector EdgeSet Filter",
    no_grad="EdgeSet")
class TreeConv:
    """The windows of all nodes times Filter [columns, 3, output size, filters].

    EdgeSet has pairs [parent, child] of nodes counted from 1 on; a pair with a 0 is padding. A tree has a node more
    than edges; rows of Out behind its last node are 0.
    """

    def infer(k):
        """A row for each row of NodesVector."""
        nodes, edges, filter = k.shape("NodesVector"), k.shape("EdgeSet"), k.shape("Filter")
        if len(nodes) != 3 or len(edges) != 3 or edges[2] not in (2, -1):
            k.fail(f"expected NodesVector [N, nodes, columns] and EdgeSet [N, edges, 2], got {list(nodes)} and "
                   f"{list(edges)}")
        if len(filter) != 4 or filter[1] != 3 or nodes[2] not in (filter[0], -1):
            k.fail(f"expected Filter [{nodes[2]} columns of NodesVector, 3, output size, filters], got {list(filter)}")
        if k.attr("max_depth") < 2:
            k.fail(f"max_depth: expected 2 or more, got {k.attr('max_depth')}")
        k.set("Out", [*nodes[:2], *filter[2:]], lod=())

    def run(k):
        """Windows, then one product."""
        windows = _Windows(k)
        multiply = product(windows.sums, _matrix(k["Filter"]), k["Out"].reshape(len(windows.sums), -1))
        return lambda: (windows.find(), windows.fill(), multiply())

    def grad(k):
        """The windows are made again rather than kept."""
        windows, dout, dnodes = _Windows(k), k["Out@GRAD"], k["NodesVector@GRAD"]
        dout, calls = dout.reshape(len(windows.sums), -1), [windows.find]
        if k.has("Filter@GRAD"):
            calls += [windows.fill, product(windows.sums.T, dout, _matrix(k["Filter@GRAD"]))]
        if k.has("NodesVector@GRAD"):
            calls += [product(dout, _matrix(k["Filter"]).T, windows.sums), lambda: windows.spread(dnodes)]
        return lambda: [call() for call in calls]


def _matrix(filter):
    return filter.reshape(filter.shape[0] * filter.shape[1], -1)


class _Windows:
    """In which windows each node is, and with which weights; ``sums`` is room for all windows, a row each."""

    def __init__(self, k):
        self.k, self.xp, self.depth = k, k.xp, k.attr("max_depth")
        self.features, self.edges = k["NodesVector"], k["EdgeSet"]
        self.batch, self.nodes, self.width = self.features.shape
        total, kind = self.batch * self.nodes, self.features.dtype
        self.sums = k.scratch((total, 3 * self.width), kind)
        self.parts = k.scratch((self.depth, total, self.width, 3), kind)
        self.rows, self.weights = k.scratch((self.depth, total), np.int64), k.scratch((self.depth, total, 3), kind)
        # Nodes of the n-th tree are counted from n * (nodes + 1) on, whose first is none.
        self.starts = k.xp.arange(self.batch, dtype="int64")[:, None] * (self.nodes + 1)
        self.check, self.check_size, self.check_parents = self._checks()

    def find(self):
        """Bring ``rows`` (the window's row, or -1) and ``weights`` up to date, for each level above a node."""
        parents, place, counts = self._read_edges()
        above = self.xp.arange(1, self.nodes + 1, dtype="int64") + 0 * self.starts
        for level in range(self.depth):
            is_there = (above > 0) & (above <= counts)
            row = above - 1 + self.starts // (self.nodes + 1) * self.nodes
            self.rows[level] = self.xp.where(is_there, row, -1).reshape(-1)
            self._weigh(level, place)
            above = parents[self.starts + above]

    def _weigh(self, level, place):
        """Left, right and top; right has the share of what left leaves of 1, as in the original."""
        below, weights = level / self.depth, self.weights[level]
        weights[:, 0] = place * below
        weights[:, 1] = below * (1 - weights[:, 0])
        weights[:, 2] = 1 - below

    def fill(self):
        """Every node's features to the windows it is in."""
        self.xp.multiply(self.features.reshape(1, -1, self.width, 1), self.weights[:, :, None, :], self.parts)
        kernels.add_rows(self._lines(), self.rows.reshape(-1), self.sums)

    def spread(self, dnodes):
        """The gradient of ``fill``, from that of the windows in ``sums``."""
        kernels.take_rows(self.sums, self.rows.reshape(-1), 0, self._lines())
        self.xp.multiply(self.parts, self.weights[:, :, None, :], self.parts)
        self.xp.sum(self.parts, axis=(0, 3), out=dnodes.reshape(-1, self.width))

    def _lines(self):
        return self.parts.reshape(-1, 3 * self.width)

    def _read_edges(self):
        """Each node's parent, where it stands among its siblings (0 to 1), and how many nodes each tree has."""
        xp, edges = self.xp, self.edges.astype("int64")
        self.check(edges)
        is_edge = (edges != 0).all(axis=2)
        edges = xp.where(is_edge[:, :, None], edges, 0)
        counts = is_edge.sum(axis=1).reshape(-1, 1) + 1
        self.check_size(xp.where(edges > counts[:, :, None], edges, 0))
        child = (edges[:, :, 1] + self.starts).reshape(-1)
        slots = self.batch * (self.nodes + 1)
        times = xp.zeros((slots,), "int64")
        row_kernels.add_at(times, child, is_edge.reshape(-1).astype("int64"))
        self.check_parents(times)
        parents, place = xp.zeros((slots,), "int64"), xp.zeros((slots,), self.features.dtype)
        parents[child] = edges[:, :, 0].reshape(-1)
        place[child] = self._places(edges, is_edge).reshape(-1)
        return parents, place.reshape(self.batch, -1)[:, 1:].reshape(-1), counts

    def _places(self, edges, is_edge):
        """0 for the first child of a node, 1 for its last, 0.5 for an only one; 0 for what is no edge."""
        xp, parent = self.xp, edges[:, :, 0]
        is_same = (parent[:, :, None] == parent[:, None, :]) & is_edge[:, None, :]
        numbers = xp.arange(parent.shape[1])
        before = (is_same & (numbers < numbers[:, None])).sum(axis=2)
        others = is_same.sum(axis=2) - 1
        return xp.where(is_edge, xp.where(others > 0, before / xp.maximum(others, 1), 0.5), 0)

    def _checks(self):
        k, size = self.k, 2 * self.edges.shape[1]
        return (Check(k, self.nodes + 1, lambda wrong, position: (
                    f"EdgeSet names node {wrong} in tree {position // size}: expected 1 to {self.nodes}, the rows of "
                    f"NodesVector, or 0 for padding")),
                Check(k, 1, lambda wrong, position: (
                    f"EdgeSet names node {wrong} in tree {position // size}, which has fewer edges than that: nodes of "
                    f"a tree with E edges are numbered from 1 to E + 1")),
                Check(k, 2, lambda wrong, position: (
                    f"node {position % (self.nodes + 1)} of tree {position // (self.nodes + 1)} has {wrong} parents in "
                    f"EdgeSet: expected at most one")))
