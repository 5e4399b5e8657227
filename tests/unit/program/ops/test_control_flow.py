"""Ops of program/ops/control_flow.py: bodies that run under a condition, planned and interpreted."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine import plan
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.liveness import live_ops
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.control_flow import ConditionalBlock, While, cond
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.host_calls import Assert
from fleet_mpi.program.layers.manipulation import concat, where
from fleet_mpi.program.layers.math import increment, scale
from fleet_mpi.program.layers.reduction import reduce_sum
from fleet_mpi.program.layers.tensor import assign, create_global_var, fill_constant
from tests.unit.program.ops.checking import StandInPlace


@pytest.fixture(params=["planned", "interpreted"])
def way(request, monkeypatch):
    """Both ways to run a program that has no dynamic op."""
    if request.param == "interpreted":
        monkeypatch.setattr(plan, "is_dynamic", lambda ops: True)
    else:
        monkeypatch.setattr(plan, "InterpretedPlan", None)


def run(fetches, place=None, **feed):
    feed = {name: np.array([value], "float32") for name, value in feed.items()}
    return [float(one) for one in Executor(place).run(feed=feed, fetch_list=fetches)]


def below(x, limit):
    return less_than(x, fill_constant([1], "float32", limit))


def when(condition):
    return ConditionalBlock([condition], is_scalar_condition=True).block()


def x_fed():
    return static_data("x", [1])


def test_an_outer_variable_that_a_body_does_not_write_this_time_keeps_its_value(way):
    x, out = x_fed(), None
    out = scale(x, 1.0, bias=5.0)
    with when(below(x, 1.0)):
        assign(scale(x, 10.0), out)
    after = scale(out, 2.0)
    assert run([out, after], x=0.5) == [5.0, 10.0]
    assert run([out, after], x=3.0) == [8.0, 16.0]


def test_each_run_starts_anew(way):
    x = x_fed()
    out = fill_constant([1], "float32", 1.0)
    with when(below(x, 1.0)):
        assign(scale(out, 2.0), out)
    executor = Executor()
    found = [float(executor.run(feed={"x": np.array([value], "float32")}, fetch_list=[out])[0])
             for value in (0.0, 2.0, 0.0)]
    assert found == [2.0, 1.0, 2.0]


def test_what_a_body_writes_to_persistable_variables_stays(way):
    x = x_fed()
    count = create_global_var([1], 0.0, "float32", persistable=True, name="count")
    with when(below(x, 1.0)):
        increment(count)
    executor = Executor()
    executor.run(default_startup_program())
    for value in (0.0, 5.0, 0.5):
        executor.run(feed={"x": np.array([value], "float32")})
    assert float(np.array(global_scope().find_var("count").get_tensor())[0]) == 2.0


def test_bodies_in_bodies_see_all_variables_around_them(way):
    x = x_fed()
    out, ten = fill_constant([1], "float32", 0.0), fill_constant([1], "float32", 10.0)
    with when(below(x, 4.0)):
        inner = scale(x, 1.0, bias=1.0)
        with when(below(inner, 3.0)):
            assign(inner + ten, out)
    assert [run([out], x=value) for value in (1.0, 3.0, 9.0)] == [[12.0], [0.0], [0.0]]


def test_a_body_that_nobody_needs_does_not_run_unless_it_has_an_effect():
    x = x_fed()
    unread = fill_constant([1], "float32", 0.0)
    with when(below(x, 1.0)):
        assign(scale(x, 2.0), unread)
    assert run([scale(x, 3.0)], x=1.0) == [3.0]
    program = default_main_program()
    last = program.global_block().ops[-1].output("Out")
    assert "conditional_block" not in [op.type for op in live_ops(program, last)]


def test_branches_with_different_shapes_are_interpreted():
    x = x_fed()
    out = cond(below(x, 1.0), lambda: fill_constant([1], "float32", 3.0), lambda: fill_constant([4], "float32", 2.0))
    total = reduce_sum(out)
    assert run([total], x=0.0) == [3.0] and run([total], x=5.0) == [8.0]


def test_conditions_are_asked_on_a_device_too():
    x = x_fed()
    out = scale(x, 1.0, bias=5.0)
    with when(below(x, 1.0)):
        assign(scale(x, 10.0), out)
    assert run([out], StandInPlace(), x=0.5) == [5.0] and run([out], StandInPlace(), x=3.0) == [8.0]


def test_without_a_scalar_condition_the_body_runs_if_the_input_is_not_empty():
    found = where(static_data("flags", [-1], "bool"))
    out = fill_constant([1], "float32", 0.0)
    with ConditionalBlock([found]).block():
        assign(fill_constant([1], "float32", 1.0), out)
    executor = Executor()
    for flags, wanted in (([True, False], 1.0), ([False, False], 0.0)):
        assert float(executor.run(feed={"flags": np.array(flags)}, fetch_list=[out])[0]) == wanted


def loop_until(limit):
    i, total = fill_constant([1], "float32", 0.0), fill_constant([1], "float32", 0.0)
    more = less_than(i, limit)
    return i, total, more


@pytest.mark.parametrize("place", [None, StandInPlace()])
def test_a_loop_runs_as_long_as_its_condition_holds(place):
    limit = static_data("limit", [1])
    i, total, more = loop_until(limit)
    with While(more).block():
        assign(total + i, total)
        increment(i)
        less_than(i, limit, cond=more)
    assert run([total, i], place, limit=4.0) == [6.0, 4.0]
    assert run([total, i], place, limit=0.0) == [0.0, 0.0]


def test_a_loop_may_make_a_variable_longer_at_every_turn():
    limit = static_data("limit", [1])
    i, _, more = loop_until(limit)
    grown = fill_constant([1], "float32", 1.0)
    with While(more).block():
        assign(concat([grown, grown]), grown)
        increment(i)
        less_than(i, limit, cond=more)
    assert run([reduce_sum(grown)], limit=3.0) == [8.0]


def test_a_loop_in_a_branch_in_a_loop():
    limit = static_data("limit", [1])
    i, total, more = loop_until(limit)
    with While(more).block():
        with when(less_than(fill_constant([1], "float32", 0.5), i)):
            j, inner_more = fill_constant([1], "float32", 0.0), None
            inner_more = less_than(j, i)
            with While(inner_more).block():
                increment(total)
                increment(j)
                less_than(j, i, cond=inner_more)
        increment(i)
        less_than(i, limit, cond=more)
    assert run([total], limit=5.0) == [10.0]  # 1 + 2 + 3 + 4


def test_pruning_keeps_what_a_body_needs():
    x = x_fed()
    out = scale(x, 1.0, bias=5.0)
    with when(below(x, 1.0)):
        assign(scale(x, 10.0), out)
    pruned = default_main_program()._prune([out])
    executor = Executor()
    for value, wanted in ((0.5, 5.0), (3.0, 8.0)):
        assert float(executor.run(pruned, {"x": np.array([value], "float32")}, [out.name])[0]) == wanted


def test_an_assertion_that_fails_shows_its_data():
    x = x_fed()
    Assert(below(x, 1.0), [x])
    run([], x=0.0)
    with pytest.raises(ProgramError, match=r"does not hold \(x = \[2\.\]\)"):
        run([], x=2.0)
