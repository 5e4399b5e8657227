"""Feed and fetch ops: made as the original makes them, shown, and passed over when a program runs."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.feed_fetch import (
    append_fetch_ops,
    has_feed_operators,
    has_fetch_operators,
    prepend_feed_ops,
)
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.serialize import program_from_bytes, program_to_bytes
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.math import elementwise_add, scale


@pytest.fixture
def program():
    total = elementwise_add(static_data("x", [None, 2]), scale(static_data("y", [None, 2]), 3.0))
    main = default_main_program()
    prepend_feed_ops(main, ["x", "y"])
    append_fetch_ops(main, [total.name])
    return main, total


def test_feed_ops_come_first_and_fetch_ops_last_each_with_its_column(program):
    ops = program[0].global_block().ops
    assert [op.type for op in ops] == ["feed", "feed", "scale", "elementwise_add", "fetch"]
    assert [(op.output("Out"), op.attr("col")) for op in ops[:2]] == [(["x"], 0), (["y"], 1)]
    assert (ops[-1].input("X"), ops[-1].output("Out")) == ([program[1].name], ["fetch"])
    block = program[0].global_block()
    assert (block.var("feed").type, block.var("fetch").type) == (VarType.FEED_MINIBATCH, VarType.FETCH_LIST)


def test_a_program_with_them_runs_as_one_without_also_read_back(program):
    feed = {"x": np.ones((1, 2), "float32"), "y": np.full((1, 2), 2, "float32")}
    for one in (program[0], program_from_bytes(program_to_bytes(program[0]))):
        found, = Executor().run(one, feed=feed, fetch_list=[program[1].name])
        assert found.tolist() == [[7, 7]]


def test_whether_they_are_there_can_be_asked(program):
    block = program[0].global_block()
    assert has_feed_operators(block, {"x": 1, "y": 1}, "feed") and has_fetch_operators(block, [program[1]], "fetch")
    assert not has_feed_operators(block, {"x": 1}, "other")
    with pytest.raises(UsageError, match=r"feed ops for \['y'\]"):
        has_feed_operators(block, {"x": 1}, "feed")


def test_what_the_program_does_not_have_cannot_be_fed():
    with pytest.raises(UsageError, match="no variable 'z' to feed"):
        prepend_feed_ops(default_main_program(), ["z"])
