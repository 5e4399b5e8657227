"""The table of a program's parameters and operations, with the numbers of the original's documentation."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError

# The first lines of the documentation's table, of a ResNet, then a layer of its end.
LINES = [
    "| No. |       TYPE |          INPUT |         OUTPUT | PARAMs |     FLOPs |",
    "|   0 |     conv2d |  (3, 200, 200) | (64, 100, 100) |   9408 | 188160000 |",
    "|   1 | batch_norm | (64, 100, 100) | (64, 100, 100) |    128 |   1280000 |",
    "|   2 |       relu | (64, 100, 100) | (64, 100, 100) |      0 |    640000 |",
    "|   3 |     pool2d | (64, 100, 100) |   (64, 50, 50) |      0 |   1440000 |",
    "|   4 |     pool2d |   (64, 50, 50) |     (64, 1, 1) |      0 |    160000 |",
    "|   5 |        mul |     (64, 1, 1) |          (10,) |    641 |       640 |"]


def test_layers_are_counted_as_the_original_counts_them(capsys):
    x = fluid.layers.data("x", [3, 200, 200])
    x = fluid.layers.conv2d(x, 64, 7, stride=2, padding=3, bias_attr=False)
    x = fluid.layers.pool2d(fluid.layers.batch_norm(x, act="relu"), 3, "max", 2, pool_padding=1)
    fluid.layers.mean(fluid.layers.fc(fluid.layers.pool2d(x, pool_type="avg", global_pooling=True), 10))
    fluid.contrib.summary(fluid.default_main_program())
    printed = capsys.readouterr().out.splitlines()
    rule = "+-----+------------+----------------+----------------+--------+-----------+"
    assert printed[:-2] == [rule, LINES[0], rule, *LINES[1:], rule]
    assert printed[-2:] == ["Total PARAMs: 10177(0.0102M)", "Total FLOPs: 191680640(0.19G)"]


def test_something_else_than_a_program_is_refused():
    with pytest.raises(UsageError, match="summary: expected a Program, got int"):
        fluid.contrib.summary(1)
