"""Dense layers and embeddings on weights that exist already."""

import numpy as np

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers import given_weights
from tests.unit.program.building import data, parameter


def test_linear_with_and_without_bias():
    weight, bias = parameter("w", [[1, 2], [3, 4]]), parameter("b", [10, 20])
    x = data("x", [-1, 3, 2])
    outs = [given_weights.linear(x, weight, bias), given_weights.linear(x, weight)]
    rows = np.arange(6, dtype="float32").reshape(1, 3, 2)
    with_bias, without = Executor().run(feed={"x": rows}, fetch_list=outs)
    assert without.tolist() == (rows @ [[1, 2], [3, 4]]).tolist()
    assert with_bias.tolist() == (without + [10, 20]).tolist()


def test_embedding_of_a_given_table():
    table = parameter("table", [[1, 2], [3, 4], [5, 6]])
    out = given_weights.embedding(data("ids", [-1, 2], "int64"), table, padding_idx=1)
    found, = Executor().run(feed={"ids": np.array([[2, 1]])}, fetch_list=[out])
    assert found.tolist() == [[[5, 6], [0, 0]]]
