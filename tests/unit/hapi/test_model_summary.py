"""paddle.summary: what it prints and counts, and that nothing of it stays."""

import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import UsageError
from fleet_mpi.paddle import nn


def test_layers_shapes_and_counts(capsys):
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2, bias_attr=False)))
    ops = len(paddle.static.default_main_program().global_block().ops)
    assert paddle.summary(network, (8, 4)) == {"total_params": 21, "trainable_params": 21}
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "_" in line]
    assert [row[1] for row in rows] == ["(Linear)", "(ReLU)", "(Linear)"]
    assert rows[0][-5:] == ["[8,", "4]", "[8,", "3]", "15"]
    assert len(paddle.static.default_main_program().global_block().ops) == ops
    x = paddle.static.data("x", [None, 4])
    assert network(x).shape == (-1, 2) and not list(network[0]._forward_post_hooks)


def test_what_does_not_train_is_counted_apart():
    network = nn.Linear(4, 3, bias_attr=paddle.ParamAttr(trainable=False))
    assert paddle.Model(network).summary([(None, 4)]) == {"total_params": 15, "trainable_params": 12}


def test_sizes_of_several_inputs_and_kinds():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.last = nn.Embedding(10, 3), nn.Linear(3, 1)

        def forward(self, ids, x):
            return self.last(self.words(ids) + x)

    assert paddle.summary(Net(), [(2, 5), (2, 5, 3)], dtypes=["int64", "float32"])["total_params"] == 34
    with pytest.raises(UsageError, match="expected input_size"):
        paddle.summary(Net(), 3)
