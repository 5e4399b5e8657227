"""Ops of program/ops/hierarchical_sigmoid.py."""

import math

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)
WIDTH = 3
TABLE = np.array([[0, 2, -1, -1], [0, 1, 3, -1], [0, 1, 4, 5], [0, 2, -1, 4]])
CODE = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]])


def complete(label, classes):
    """(node, bit) from the leaf up, by the numbers of a heap."""
    leaf, found = label + classes, []
    while leaf > 1:
        found.append((leaf // 2 - 1, leaf % 2))
        leaf //= 2
    return found


def custom(i):
    found = []
    for node, bit in zip(TABLE[i], CODE[i]):
        if node < 0:
            break
        found.append((node, bit))
    return found


def costs(inputs, attrs):
    x, weight, bias = inputs["X"], inputs["W"], inputs.get("Bias")
    depth = TABLE.shape[1] if "PathTable" in inputs else math.ceil(math.log2(attrs["num_classes"]))
    out, kept = np.zeros((len(x), 1)), np.full((len(x), depth), math.log(2))
    for i, label in enumerate(inputs["Label"].ravel()):
        path = custom(i) if "PathTable" in inputs else complete(label, attrs["num_classes"])
        for j, (node, bit) in enumerate(path):
            z = np.clip(x[i] @ weight[node] + (0 if bias is None else bias[node, 0]), -40, 40)
            kept[i, j] = math.log(1 + math.exp(z))
            out[i] -= bit * z
    return {"Out": out + kept.sum(1, keepdims=True), "PreOut": kept}


def case(classes=6, is_custom=False, sparse=False, with_bias=True, size=1.0, labels=None):
    inputs = {"X": rng.normal(size=(4, WIDTH)) * size, "W": rng.normal(size=(classes - (not is_custom), WIDTH)) * size,
              "Label": np.array([[0], [classes - 1], [1], [2 % classes]]) if labels is None else labels}
    if is_custom:
        inputs.update(PathTable=TABLE, PathCode=CODE)
    if with_bias:
        inputs["Bias"] = rng.normal(size=(len(inputs["W"]), 1))
    return Case("hierarchical_sigmoid", inputs, {"num_classes": classes, "is_sparse": sparse}, costs, by="Out",
                grads="X W" + (" Bias" if with_bias else ""), near=1e-5,
                note=f"{classes}{' custom' if is_custom else ''}{' rows' if sparse else ''}")


CASES = [case(), case(2), case(8, sparse=True), case(5, with_bias=False), case(is_custom=True),
         case(is_custom=True, sparse=True, with_bias=False)]
test_forward, test_gradient, test_device = checks(CASES)


def test_logits_are_cut_at_forty():
    check_forward(case(size=20.0))


def test_the_gradient_of_a_sparse_weight_has_the_rows_of_the_paths_only():
    built = Built(case(is_custom=True, sparse=True), with_grad=True)
    found = built.run([built.gradients[1]], return_numpy=False)[0]
    assert isinstance(found, Rows) and set(found.ids.tolist()) == {0, 1, 2, 3, 4, 5}
    assert len(found) == TABLE.size, "a path that is shorter repeats its first node, with zeros"
    assert not found.values[[2, 3]].any()


def test_a_label_that_is_no_class_is_refused():
    one = case(labels=np.array([[0], [5], [6], [1]]))
    one.outputs = {"Out": [None], "PreOut": [None]}
    with pytest.raises(ProgramError, match="id 6 at position 2 is outside the classes of 6"):
        Built(one).run(["Out_out_0"])


def test_a_node_beyond_the_weight_is_refused():
    one = case(is_custom=True)
    one.inputs["PathTable"] = TABLE + (TABLE == 5)
    with pytest.raises(ProgramError, match="id 6 at position 11 is outside the tree's nodes of 6"):
        Built(one).run(["Out_out_0"])
