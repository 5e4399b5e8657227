"""Layers of program/layers/tree_nodes.py: the documented examples, and what is refused."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program

TREE = np.array([[0, 0, 0, 1, 2], [0, 1, 0, 3, 4], [0, 1, 0, 5, 6], [0, 2, 1, 0, 0], [1, 2, 1, 0, 0], [2, 2, 2, 0, 0],
                 [3, 2, 2, 0, 0]])
PATHS = np.array([[1, 3], [1, 4], [2, 5], [2, 6]])
LAYERS = np.array([[1], [2], [3], [4], [5], [6]])


def given(values):
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(values))


def fetched(feed, *variables):
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    return executor.run(feed=feed, fetch_list=list(variables), scope=scope)


def sampled(items, counts=(0, 0), layer_list=LAYERS, **options):
    x = fluid.data(name="x", shape=[None, 1], dtype="int32", lod_level=1)
    made = fluid.contrib.layers.tdm_sampler(x, list(counts), [2, 4], 4, tree_travel_attr=given(PATHS),
                                            tree_layer_attr=given(layer_list), **options)
    parts = [part for one in made for part in (one if isinstance(one, list) else [one])]
    return made, fetched({"x": np.array(items, np.int32).reshape(-1, 1)}, *parts)


def test_the_documented_example_of_children_keeps_the_column_of_its_ids_where_the_original_is_in_doubt():
    x = fluid.data(name="x", shape=[None, 1], dtype="int32", lod_level=1)
    child, mask = fluid.contrib.tdm_child(x, 7, 2, param_attr=given(TREE))
    assert child.shape == (-1, 1, 2) and child.stop_gradient and mask.stop_gradient  # its text shows [-1, 2]
    found, leaves = fetched({"x": np.array([[2], [3]], np.int32)}, child, mask)
    assert found.tolist() == [[[5, 6]], [[0, 0]]] and leaves.tolist() == [[[1, 1]], [[0, 0]]]
    assert found.dtype == leaves.dtype == np.int32


def test_the_documented_example_of_samples():
    _, found = sampled([0, 1, 2, 3], output_list=False)
    assert [one.tolist() for one in found] == [PATHS.tolist(), [[1, 1]] * 4, [[1, 1]] * 4]


def test_samples_come_layer_by_layer():
    made, found = sampled([0, 3], counts=(1, 2), dtype="int64")
    assert [one.shape for one in made[0]] == [(-1, 2, 1), (-1, 3, 1)] and all(one.stop_gradient for one in made[0])
    upper, lower, *labels = found[:4]
    assert upper[..., 0].tolist() == [[1, 2], [2, 1]] and lower[:, 0, 0].tolist() == [3, 6]
    assert labels[0][..., 0].tolist() == [[1, 0]] * 2 and labels[1][..., 0].tolist() == [[1, 0, 0]] * 2
    assert all(len({*row}) == 3 and {*row} <= {3, 4, 5, 6} for row in lower[..., 0].tolist())
    assert upper.dtype == np.int64


def test_without_the_path_there_are_other_nodes_only():
    _, (upper, lower, *_) = sampled([0, 3], counts=(1, 3), output_positive=False)
    assert upper[..., 0].tolist() == [[2], [1]]
    assert [sorted(row) for row in lower[..., 0].tolist()] == [[4, 5, 6], [3, 4, 5]]


def test_layers_may_be_given_in_one_line():
    _, (upper, _, *_) = sampled([2], counts=(1, 0), layer_list=LAYERS.reshape(-1))
    assert upper[..., 0].tolist() == [[2, 1]]


def test_a_tree_is_neither_trained_nor_averaged():
    child, _ = fluid.contrib.layers.tdm_child(fluid.data(name="x", shape=[None, 1], dtype="int32"), 7, 2, given(TREE))
    cost = fluid.layers.mean(fluid.layers.fc(fluid.layers.cast(child, "float32"), size=1))
    _, trained = fluid.optimizer.SGD(0.1).minimize(cost)
    tree, *others = default_main_program().all_parameters()
    assert [param.name for param, _ in trained] == [param.name for param in others] and len(others) == 2
    fluid.optimizer.ExponentialMovingAverage(0.9).update()
    updated = {name for op in default_main_program().global_block().ops for name in op.output_arg_names}
    assert tree.name not in updated and not [name for name in updated if name.startswith(tree.name)]


@pytest.mark.parametrize("changes, text", [
    ({"neg_samples_num_list": [1]}, "for each of the 2 layers"),
    ({"neg_samples_num_list": [1, 4]}, r"layer 1 has 4 nodes: expected 0 to 3 negative samples, got .*\[1\]=4"),
    ({"leaf_node_num": 6}, "fewer leaves than the 6 nodes of all layers, got 6"),
    ({"tree_dtype": "float32"}, "tree_dtype: expected 'int32' or 'int64', got 'float32'"),
    ({"dtype": "int8"}, "dtype: expected 'int32' or 'int64', got 'int8'"),
    ({"x": np.zeros((2, 1))}, "argument 'x' must be a variable"),
    ({"tree_travel_attr": given(PATHS[:2])}, r"has shape \(4, 2\), the array \(2, 2\)"),
])
def test_what_does_not_fit_is_refused(changes, text):
    arguments = dict(x=fluid.data(name="x", shape=[None, 1], dtype="int32"), neg_samples_num_list=[0, 0],
                     layer_node_num_list=[2, 4], leaf_node_num=4)
    with pytest.raises(UsageError, match=text):
        fluid.contrib.layers.tdm_sampler(**{**arguments, **changes})


def test_children_of_a_tree_of_fractions_are_refused():
    with pytest.raises(UsageError, match="tdm_child: dtype: expected 'int32' or 'int64'"):
        fluid.contrib.layers.tdm_child(fluid.data(name="x", shape=[None, 1], dtype="int32"), 7, 2, dtype="float32")
