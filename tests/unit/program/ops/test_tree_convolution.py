"""The op of program/ops/tree_convolution.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, check_gradient, checks

rng = np.random.default_rng(0)
# A tree of eight nodes and one of four, padded.
EDGES = np.array([[[1, 2], [1, 3], [1, 4], [2, 5], [2, 6], [4, 7], [7, 8]],
                  [[1, 3], [3, 2], [3, 4], [0, 0], [0, 0], [0, 0], [0, 0]]])


def below(edges, node, level, depth):
    """(node, level, place among its siblings, how many they are) of all below a node."""
    children = [child for parent, child in edges if parent == node]
    for place, child in enumerate(children, start=1):
        if level + 1 < depth:
            yield child, level + 1, place, len(children)
            yield from below(edges, child, level + 1, depth)


def convolved(inputs, attrs):
    """Window by window, as the paper's formulas say (and the original's, for right)."""
    nodes, weight, depth = inputs["NodesVector"], inputs["Filter"], attrs["max_depth"]
    out = np.zeros((*nodes.shape[:2], *weight.shape[2:]))
    for n, tree in enumerate(inputs["EdgeSet"].astype(int).tolist()):
        edges = [tuple(pair) for pair in tree if 0 not in pair]
        for root in range(1, len(edges) + 2):
            for node, level, place, count in [(root, 0, 1, 1), *below(edges, root, 0, depth)]:
                top = (depth - level) / depth
                left = (1 - top) * (0.5 if count == 1 else (place - 1) / (count - 1))
                right = (1 - top) * (1 - left)
                mixed = np.tensordot([left, right, top], weight, axes=(0, 1))
                out[n, root - 1] += np.tensordot(nodes[n, node - 1], mixed, axes=1)
    return {"Out": out}


def case(depth=2, edges=EDGES, nodes=9, note=""):
    return Case("tree_conv", {"NodesVector": rng.normal(size=(len(edges), nodes, 2)), "EdgeSet": edges,
                              "Filter": rng.normal(size=(2, 3, 2, 3))}, {"max_depth": depth}, convolved,
                grads="NodesVector Filter", note=note)


CASES = [case(), case(depth=4, note="deep"), case(edges=EDGES[:, :, :].astype(np.float32), note="edges as floats"),
         case(edges=np.zeros((1, 2, 2), np.int32), nodes=3, note="one node")]
test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("grads", ["NodesVector", "Filter"])
def test_one_gradient_alone_is_right(grads):
    made = case()
    made.grads = [grads]
    check_gradient(made)


def test_padding_between_edges_is_passed_over_where_the_original_is_in_doubt():
    check_forward(case(edges=EDGES[:, [0, 1, 2, 3, 4, 5, 5, 6]] * np.array([1, 1, 1, 1, 1, 0, 1, 1])[:, None]))


def with_edge(*pair):
    edges = EDGES.copy()
    edges[1, 2] = pair
    made = case(edges=edges)
    made.outputs = {"Out": [0]}
    return made


def changed(depth=2, **inputs):
    made = case(depth)
    made.outputs = {"Out": [0]}
    made.inputs.update(inputs)
    return made


@pytest.mark.parametrize("made, text", [
    (with_edge(3, 10), "names node 10 in tree 1: expected 1 to 9"),
    (with_edge(3, 6), "names node 6 in tree 1, which has fewer edges than that"),
    (with_edge(1, 2), "node 2 of tree 1 has 2 parents"),
    (changed(EdgeSet=np.ones((2, 3, 3))), r"EdgeSet \[N, edges, 2\], got \[2, 9, 2\] and \[2, 3, 3\]"),
    (changed(Filter=np.ones((2, 2, 2, 2))), "expected Filter"),
    (changed(depth=1), "max_depth: expected 2 or more, got 1"),
])
def test_what_does_not_fit_is_refused(made, text):
    with pytest.raises(ProgramError, match=text):
        Built(made).run(["Out_out_0"])
