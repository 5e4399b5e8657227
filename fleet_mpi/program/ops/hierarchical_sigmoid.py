"""Classes as leaves of a binary tree: a label costs the decisions on the way to it, not one against every class."""

import numpy as np

from fleet_mpi.kernels.reference import rows as row_kernels
from fleet_mpi.program.engine.outside import ANY, id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.class_rows import REMOTE, ROWS, infer_grads, input_grad_call, logits_call, weight_grad_call

LARGEST = 40.0  # as in the original: decisions are cut at this logit


class Path:
    """The inner nodes on the way to each row's label, and the decision at each: ``nodes`` and ``bits``.

    Without a table, class c is the leaf c + num_classes of a complete tree whose node n has the children 2n and
    2n + 1; the way is listed from the leaf up. Nodes that a shorter way does not have are -1.
    """

    def __init__(self, k):
        self.k, self.is_given = k, k.has("PathTable")
        self.classes = k.attr("num_classes")
        shape = k.shape("PathTable") if self.is_given else (k.shape("X")[0], (self.classes - 1).bit_length())
        self.nodes, self.bits = k.keep(shape, np.int64), k.keep(shape, np.int64)
        self.levels = k.xp.arange(shape[1], dtype="int64").reshape(1, -1)

    def call(self, height):
        """The call that fills both; an error for a label or node that does not exist."""
        fill = self._from_table() if self.is_given else self._from_labels()
        if self.is_given:
            given, check = self.k["PathTable"], id_check(self.k, height, "the tree's nodes", lowest=ANY)
        else:
            given, check = self.k["Label"], id_check(self.k, self.classes, "the classes")
        return lambda: (check(given), fill())

    def _from_table(self):
        table, code, xp = self.k["PathTable"], self.k["PathCode"], self.k.xp

        def fill():
            is_on_way = xp.cumsum((table < 0).astype("int64"), axis=1) == 0
            xp.copyto(self.nodes, xp.where(is_on_way, table, -1))
            xp.copyto(self.bits, xp.where(is_on_way, code, 0))
        return fill

    def _from_labels(self):
        labels, xp = self.k["Label"].reshape(-1, 1), self.k.xp

        def fill():
            leaves = labels.astype("int64") + self.classes
            above = xp.right_shift(leaves, self.levels + 1)
            xp.copyto(self.nodes, above - 1)
            xp.copyto(self.bits, xp.where(above > 0, xp.right_shift(leaves, self.levels) % 2, 0))
        return fill


@op("hierarchical_sigmoid", "X W Label PathTable? PathCode? Bias?", f"Out PreOut {ROWS}?",
    attrs={"num_classes": 2, **REMOTE}, grad_reads=f"X W Label PathTable PathCode PreOut {ROWS}",
    no_grad="Label PathTable PathCode", by_rows="W")
class HierarchicalSigmoid:
    """The sum over the label's path of log(1 + e^z) - bit z, z = x . w + b of the node.

    A way that is shorter than the longest costs log 2 for every node it lacks, as in the original: a constant.
    PreOut keeps log(1 + e^z).
    """

    def infer(k):
        batch, width = k.shape("X")
        if k.has("PathTable") != k.has("PathCode"):
            k.fail("a tree of one's own needs both PathTable and PathCode")
        if not k.has("PathTable") and k.attr("num_classes") < 2:
            k.fail(f"expected num_classes from 2 up, got {k.attr('num_classes')}")
        depth = k.shape("PathTable")[1] if k.has("PathTable") else (k.attr("num_classes") - 1).bit_length()
        k.set("Out", [batch, 1], lod=())
        k.set("PreOut", [batch, depth], lod=())
        k.set(ROWS, [batch, depth, width], lod=())

    def run(k):
        """Find the path, multiply, sum."""
        path, costs, out, bias, xp = Path(k), k["PreOut"], k["Out"].reshape(-1), k["Bias"], k.xp
        fill, bits, nodes = path.call(k["W"].shape[0]), path.bits, path.nodes
        logits = logits_call(k, k["X"], k["W"], nodes, costs)
        bias = None if bias is None else bias.reshape(-1)

        def run():
            fill()
            logits()
            made = costs if bias is None else costs + xp.where(nodes < 0, 0.0, bias[xp.maximum(nodes, 0)])
            made = xp.clip(made, -LARGEST, LARGEST)
            xp.copyto(costs, xp.log(1.0 + xp.exp(made)), casting="same_kind")
            xp.sum(costs - xp.where(bits > 0, made, 0.0), axis=1, out=out)
        return run

    infer_grad = infer_grads("W")

    def grad(k):
        """sigmoid(z) - bit at each node; then the input's, the rows' and the bias's."""
        path, costs, dout, xp = Path(k), k["PreOut"], k["Out@GRAD"].reshape(-1, 1), k.xp
        bits, nodes, dlogits = path.bits, path.nodes, k.scratch(costs.shape, costs.dtype)
        height = k.shape_of_forward("W")[0]
        calls = [path.call(height), lambda: xp.copyto(dlogits, xp.where(
            nodes < 0, 0.0, (xp.where(bits > 0, 0.0, 1.0) - xp.exp(-costs)) * dout), casting="same_kind")]
        if k.has("X@GRAD"):
            calls.append(input_grad_call(k, "W", dlogits, nodes, k["X@GRAD"]))
        if k.has("W@GRAD"):
            calls.append(weight_grad_call(k, "W", dlogits, k["X"], nodes))
        if k.has("Bias@GRAD"):
            line = k["Bias@GRAD"].reshape(-1)
            calls.append(lambda: (line.fill(0), row_kernels.add_at(line, xp.maximum(nodes, 0), dlogits)))
        return lambda: [call() for call in calls]
