"""Which ops keep the sequences of their input: those of the original that share the LoD."""

import numpy as np
import pytest

from fleet_mpi.fluid import layers
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import create_lod_tensor
from fleet_mpi.program.graph.program import default_startup_program
from tests.unit.program.building import data, from_scratch

LENGTHS = [[2, 1, 3]]
ROWS = np.linspace(0.1, 0.9, 24, dtype="float32").reshape(6, 4)


def image(x):
    return layers.reshape(x, [-1, 1, 2, 2])


KEPT = {
    "expand": lambda x: layers.expand(x, [1, 3]),
    "expand, one dimension more": lambda x: layers.expand(layers.unsqueeze(x, [1]), [1, 2, 1]),
    "pad": lambda x: layers.pad(x, [0, 0, 1, 2]),
    "pad2d": lambda x: layers.pad2d(image(x), [1, 1, 0, 0]),
    "conv2d": lambda x: layers.conv2d(image(x), 2, 2),
    "pool2d": lambda x: layers.pool2d(image(x), 2, "max", 2),
    "reshape": image,
    "squeeze": lambda x: layers.squeeze(layers.unsqueeze(x, [2]), [2]),
    "flatten": lambda x: layers.flatten(image(x)),
    "fc": lambda x: layers.fc(x, 3),
    "scale": lambda x: x * 2.0 + 1.0,
    "elementwise_add": lambda x: x + x,
    "relu": layers.relu,
    "softmax": lambda x: layers.softmax(x),
    "dropout": lambda x: layers.dropout(x, 0.5),
    "layer_norm": lambda x: layers.layer_norm(x),
    "batch_norm": lambda x: layers.batch_norm(x),
    "concat of columns": lambda x: layers.concat([x, x], axis=1),
    "split of columns": lambda x: layers.split(x, 2, dim=1)[1],
    "slice of columns": lambda x: layers.slice(x, axes=[1], starts=[0], ends=[2]),
    "reduce_sum of columns": lambda x: layers.reduce_sum(x, dim=1),
    "topk": lambda x: layers.topk(x, 2)[0],
    "cast": lambda x: layers.cast(x, "int64"),
    "matmul": lambda x: layers.matmul(x, layers.fill_constant([4, 2], "float32", 1.0)),
    "sums": lambda x: layers.sums([x, x]),
    "square_error_cost": lambda x: layers.square_error_cost(x, x),
    "assign": lambda x: layers.assign(x),
    "clip": lambda x: layers.clip(x, 0.2, 0.5),
}
LOST = {
    "expand of the rows": lambda x: layers.expand(x, [2, 1]),
    "pad of the rows": lambda x: layers.pad(x, [1, 0, 0, 0]),
    "reduce_sum of all": lambda x: layers.reduce_sum(x),
    "slice of rows": lambda x: layers.slice(x, axes=[0], starts=[0], ends=[2]),
}


def lengths_after(build):
    """The lengths that a fetched tensor has when it is computed from rows with ``LENGTHS``."""
    with from_scratch():
        out = build(data("x", [-1, 4], lod_level=1))
        executor = Executor()
        executor.run(default_startup_program())
        fed = {"x": create_lod_tensor(ROWS, LENGTHS)}
        return executor.run(feed=fed, fetch_list=[out], return_numpy=False)[0].recursive_sequence_lengths()


@pytest.mark.parametrize("name", KEPT)
def test_the_sequences_are_kept(name):
    assert lengths_after(KEPT[name]) == LENGTHS


@pytest.mark.parametrize("name", LOST)
def test_the_sequences_end_where_the_rows_change(name):
    assert lengths_after(LOST[name]) == []
