"""Ops of program/ops/tree_nodes.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

# Seven nodes: two children each; item, layer, parent, children.
TREE = np.array([[0, 0, 0, 1, 2], [0, 1, 0, 3, 4], [0, 1, 0, 5, 6], [9, 2, 1, 0, 0], [1, 2, 1, 0, 0], [2, 2, 2, 0, 0],
                 [3, 2, 2, 0, 0]])
CHILDREN = {0: (0, 0), 1: (3, 4), 2: (5, 6)}
# An unbalanced tree: node 2 is a leaf.
PATHS = np.array([[1, 3], [1, 4], [2, 0]])
LAYERS = np.array([[1], [2], [3], [4]])


def children(inputs, attrs):
    x = inputs["X"][0] if isinstance(inputs["X"], tuple) else inputs["X"]
    found = np.array([CHILDREN.get(node, (0, 0)) for node in x.ravel().tolist()]).reshape(*x.shape, 2)
    return {"Child": found, "LeafMask": (found >= 3).astype(int)}


def sampled(count, own=True, seed=0, dtype="int32"):
    return {"neg_samples_num_list": count, "layer_offset_lod": [0, 2, 4], "output_positive": own, "seed": seed,
            "dtype": dtype}


def samples(x, attrs, out, labels, mask):
    return Case("tdm_sampler", {"X": x, "Travel": PATHS, "Layer": LAYERS}, attrs,
                {"Out": np.array(out), "Labels": np.array(labels), "Mask": np.array(mask)})


ITEMS = np.array([[0], [2], [1]])
CASES = [
    Case("tdm_child", {"X": np.array([[2, 3], [1, 6]]), "TreeInfo": TREE}, {}, children),
    Case("tdm_child", {"X": (np.array([[2], [3], [0]], np.int32), [[2, 1]]), "TreeInfo": TREE},
         {"dtype": "int64"}, children, lods={"Child": [[2, 1]], "LeafMask": [[2, 1]]}, note="LoD"),
    samples(ITEMS, sampled([0, 0]), [[1, 3], [2, 0], [1, 4]], [[1, 1], [1, 0], [1, 1]], [[1, 1], [1, 0], [1, 1]]),
    samples(ITEMS, sampled([1, 1]), [[1, 2, 3, 4], [2, 1, 0, 0], [1, 2, 4, 3]],
            [[1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0]], [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]]),
    samples(ITEMS.astype(np.int32), sampled([1, 1], own=False, dtype="int64"), [[2, 4], [1, 0], [2, 3]],
            [[0, 0]] * 3, [[1, 1], [1, 0], [1, 1]]),
]
test_forward, test_device = checks(CASES)


def outputs_of(case):
    built, executor = Built(case), Executor()
    return lambda: executor.run(built.program, built.feed, ["Out_out_0"], scope=built.scope)[0]


def wide(count, seed=0):
    """One layer of twenty nodes, listed backwards, each of them an item."""
    nodes = np.arange(20, 0, -1)
    return Case("tdm_sampler", {"X": np.arange(20).repeat(30).reshape(-1, 1), "Travel": nodes.reshape(20, 1),
                                "Layer": nodes.reshape(20, 1)},
                {"neg_samples_num_list": [count], "layer_offset_lod": [0, 20], "seed": seed},
                outputs={"Out": [0], "Mask": [0]})


@pytest.mark.parametrize("count", [1, 7, 19])
def test_samples_of_a_layer_are_distinct_and_never_the_node_on_the_path(count):
    found = outputs_of(wide(count, seed=5))()
    assert found.shape == (600, count + 1) and found.min() == 1 and found.max() == 20
    assert all(len(set(row)) == count + 1 for row in found.tolist())
    assert (found[:, 0] == np.arange(20, 0, -1).repeat(30)).all()


def test_each_other_node_is_drawn_as_often():
    run = outputs_of(wide(3, seed=5))
    found = np.concatenate([run() for _ in range(10)])
    for column in found[:, 1:].T:
        assert abs(np.bincount(column)[1:] - 300).max() < 5 * np.sqrt(300)


def test_a_seed_draws_the_same_in_another_process_and_other_samples_at_every_run():
    one, other = outputs_of(wide(3, seed=5)), outputs_of(wide(3, seed=5))
    first, second = one(), one()
    np.testing.assert_array_equal(first, other())
    np.testing.assert_array_equal(second, other())
    assert (first != second).any() and (first != outputs_of(wide(3, seed=6))()).any()


@pytest.mark.parametrize("x", [np.array([[0]]), np.array([0])])
def test_the_number_before_a_layers_first_passes_as_its_node_as_in_the_original(x):
    case = Case("tdm_sampler", {"X": x, "Travel": np.array([[1, 2]]), "Layer": LAYERS}, sampled([0, 0]),
                {"Out": np.array([[1, 2]]), "Mask": np.ones((1, 2))})
    check_forward(case)


def with_travel(path, **changes):
    return Case("tdm_sampler", {"X": np.array([[0]]), "Travel": np.array([path]), "Layer": LAYERS},
                {**sampled([0, 0]), **changes}, outputs={"Out": [0], "Mask": [0]})


@pytest.mark.parametrize("case, text", [
    (Case("tdm_child", {"X": np.array([7]), "TreeInfo": TREE}, outputs={"Child": [0], "LeafMask": [0]}),
     "id 7 at position 0 is outside the tree of 7 rows"),
    (Case("tdm_child", {"X": np.array([0.5]), "TreeInfo": TREE}, outputs={"Child": [0], "LeafMask": [0]}),
     "X: expected whole numbers, got float64"),
    (Case("tdm_child", {"X": np.array([1]), "TreeInfo": TREE}, {"child_nums": 3},
          outputs={"Child": [0], "LeafMask": [0]}), r"TreeInfo \[nodes, 3 \+ child_nums\].*got 3 and \[7, 5\]"),
    (Case("tdm_child", {"X": np.array([1]), "TreeInfo": TREE[:3]}, outputs={"Child": [0], "LeafMask": [0]}),
     "id 3 at position 0 is outside the tree, as a child, of 3 rows"),
    (with_travel([3, 3]), r"node 3 is on the path of item 0 of X, in layer 0"),
    (with_travel([1, 3], neg_samples_num_list=[0, 2]), "layer 1 has 2 nodes: expected 0 to 1 negative samples, got 2"),
    (with_travel([1, 3], layer_offset_lod=[0, 2]), "expected layer_offset_lod from 0 on, a number more"),
    (with_travel([1, 3], layer_offset_lod=[0, 2, 5]), r"expected Layer with 5 nodes, got \[4, 1\]"),
    (with_travel([1]), r"expected Travel \[leaves, 2\]"),
    (Case("tdm_sampler", {"X": np.array([[0, 1]]), "Travel": PATHS, "Layer": LAYERS}, sampled([0, 0]),
          outputs={"Out": [0], "Mask": [0]}), r"an item in each row of X, \[N, 1\], got \[1, 2\]"),
    (Case("tdm_sampler", {"X": np.array([[3]]), "Travel": PATHS, "Layer": LAYERS}, sampled([0, 0]),
          outputs={"Out": [0], "Mask": [0]}), "id 3 at position 0 is outside the tree's leaves of 3 rows"),
])
def test_what_does_not_fit_is_refused(case, text):
    with pytest.raises(ProgramError, match=text):
        built = Built(case)
        built.run(built.outputs["Child" if case.type == "tdm_child" else "Out"])
