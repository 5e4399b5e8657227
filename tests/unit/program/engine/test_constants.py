"""Constants on a device: written once, in memory of their own, unless somebody else writes them too."""

import numpy as np

from fleet_mpi import fluid
from fleet_mpi.program.engine.executor import Executor
from tests.unit.program.ops.checking import StandInPlace


def plan_and_results(build):
    """(the ops of the plan, what was fetched in each of two runs)."""
    main, startup, scope, executor = fluid.Program(), fluid.Program(), fluid.Scope(), Executor(StandInPlace())
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [2], "float32")
        fetched = build(x)
    executor.run(startup, scope=scope)
    feeds = [{"x": np.array([step, 1], "float32")} for step in range(2)]
    found = [executor.run(main, feed=feed, fetch_list=[fetched], scope=scope)[0].tolist() for feed in feeds]
    plan, = executor.compiled(main, scope).plans.values()
    return [op.type for op in plan.ops], found


def test_a_constant_is_filled_when_the_plan_is_made():
    ops, found = plan_and_results(lambda x: x + fluid.layers.fill_constant([2], "float32", 3.0))
    assert "fill_constant" not in ops and found == [[3, 4], [4, 4]]


def test_what_is_computed_in_its_place_leaves_it_alone():
    def build(x):
        return fluid.layers.elementwise_add(fluid.layers.scale(fluid.layers.fill_constant([2], "float32", 3.0), 2.0), x)
    ops, found = plan_and_results(build)
    assert "fill_constant" not in ops and found == [[6, 7], [7, 7]]


def test_a_view_of_it_leaves_it_alone():
    def build(x):
        flat = fluid.layers.reshape(fluid.layers.fill_constant([2, 1], "float32", 3.0), [2])
        return fluid.layers.relu(fluid.layers.elementwise_add(flat, x))
    assert plan_and_results(build)[1] == [[3, 4], [4, 4]]


def test_a_constant_that_is_written_again_is_filled_in_every_run():
    def build(x):
        total = fluid.layers.fill_constant([2], "float32", 3.0)
        fluid.layers.assign(total + x, total)
        return total
    ops, found = plan_and_results(build)
    assert "fill_constant" in ops and found == [[3, 4], [4, 4]]


def test_a_large_constant_shares_memory():
    def build(x):
        return fluid.layers.reduce_sum(fluid.layers.fill_constant([2000], "float32", 1.0)) + x
    ops, found = plan_and_results(build)
    assert "fill_constant" in ops and found == [[2000, 2001], [2001, 2001]]


def test_the_gradient_that_backward_begins_with_is_filled_once():
    def build(x):
        weight = fluid.layers.create_parameter([2], "float32", default_initializer=fluid.initializer.Constant(1.0))
        fluid.optimizer.SGD(0.5).minimize(fluid.layers.reduce_sum(weight * x))
        return weight
    ops, found = plan_and_results(build)
    assert "fill_constant" not in ops and found == [[1, 0.5], [0.5, 0]]
