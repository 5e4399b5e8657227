"""The layer of program/layers/tree_convolution.py."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program

layers, tree_conv = fluid.layers, fluid.contrib.layers.tree_conv


def test_the_documented_example_stacks_two_and_pools():
    nodes = layers.data(name="vectors", shape=[10, 5], dtype="float32")
    edges = layers.data(name="edge_set", shape=[10, 2], dtype="float32")
    first = tree_conv(nodes, edges, 6, 1, 2)
    second = tree_conv(layers.reshape(first, shape=[-1, 10, 6]), edges, 3, 4, 2)
    pooled = layers.reduce_max(second, dim=2)
    assert first.shape == (-1, 10, 6, 1) and second.shape == (-1, 10, 3, 4) and pooled.shape == (-1, 10, 4)
    pairs = np.zeros((2, 10, 2), "int32")
    pairs[:, :3] = [[1, 2], [1, 3], [3, 4]]
    executor, scope = Executor(), Scope()
    executor.run(default_startup_program(), scope=scope)
    out, = executor.run(feed={"vectors": np.random.rand(2, 10, 5).astype("f4"), "edge_set": pairs}, fetch_list=[first],
                        scope=scope)
    assert (out[:, :4] != 0).all() and (out[:, 4:] == 0).all()  # a bias of 0, and tanh(0) is 0


def test_a_bias_and_an_activation_may_be_left_out():
    nodes, edges = layers.data(name="n", shape=[4, 5]), layers.data(name="e", shape=[3, 2], dtype="int32")
    tree_conv(nodes, edges, 6, bias_attr=False, act=None)
    assert [op.type for op in default_main_program().global_block().ops] == ["tree_conv"]
    assert len(default_main_program().all_parameters()) == 1


@pytest.mark.parametrize("nodes, text", [(np.ones((10, 5)), "'nodes_vector' must be a variable"),
                                         (None, r"nodes_vector: expected \[N, nodes, columns\], got \[-1, 5\]")])
def test_what_does_not_fit_is_refused(nodes, text):
    given = layers.data(name="n", shape=[5]) if nodes is None else nodes
    with pytest.raises(UsageError, match=text):
        tree_conv(given, layers.data(name="e", shape=[3, 2], dtype="int32"), 6)
