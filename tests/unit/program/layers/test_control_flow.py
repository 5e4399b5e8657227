"""Control-flow layers: which of the bodies run."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import control_flow as layers
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.math import increment, scale
from fleet_mpi.program.layers.tensor import assign, create_global_var, fill_constant


def below(x, limit):
    return less_than(x, fill_constant([1], x.dtype, limit))


def x_fed(dtype="float32"):
    return static_data("x", [1], dtype)


def values(fetches, inputs, dtype="float32"):
    executor = Executor()
    executor.run(default_startup_program())
    return [[float(one) for one in executor.run(feed={"x": np.array([value], dtype)}, fetch_list=fetches)]
            for value in inputs]


def test_the_first_case_that_holds_runs_else_the_default():
    x = x_fed()
    rate = create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    with layers.Switch() as switch:
        for limit in (1.0, 2.0):
            with switch.case(below(x, limit)):
                assign(fill_constant([1], "float32", limit * 10), rate)
        with switch.default():
            assign(fill_constant([1], "float32", 99.0), rate)
    assert values([rate], [0.5, 1.5, 2.5, 0.5]) == [[10.0], [20.0], [99.0], [10.0]]


def test_a_switch_without_a_case_that_holds_changes_nothing():
    x = x_fed()
    rate = create_global_var([1], 5.0, "float32", persistable=True)
    with layers.Switch() as switch:
        with switch.case(below(x, 1.0)):
            assign(x, rate)
    assert values([rate], [3.0, 0.5, 3.0]) == [[5.0], [0.5], [0.5]]


def test_a_switch_is_used_within_with():
    switch = layers.Switch()
    with pytest.raises(UsageError, match="within"):
        switch.case(below(x_fed(), 1.0))
    with layers.Switch() as switch, pytest.raises(UsageError, match="case first"):
        switch.default()


def test_one_of_two_functions_makes_the_result():
    x = x_fed()
    single = layers.cond(below(x, 1.0), lambda: scale(x, 2.0), lambda: scale(x, 3.0))
    one, two = layers.cond(below(x, 1.0), lambda: (x, scale(x, 10.0)), lambda: [scale(x, -1.0), x])
    assert values([single, one, two], [0.5, 2.0]) == [[1.0, 0.5, 5.0], [6.0, -2.0, 2.0]]
    assert single.shape == (1,)


def test_branches_may_be_for_their_effect_alone():
    x = x_fed()
    count = create_global_var([1], 0.0, "float32", persistable=True)
    assert layers.cond(below(x, 1.0), lambda: [increment(count)][1:] or None) is None
    assert values([count], [0.0, 5.0, 0.0]) == [[1.0], [1.0], [2.0]]


@pytest.mark.parametrize("true_fn, false_fn, text", [
    (lambda: fill_constant([1], "float32", 1.0), None, "nothing"),
    (lambda: [fill_constant([1], "float32", 1.0)] * 2, lambda: [fill_constant([1], "float32", 1.0)], "2 values")])
def test_branches_must_agree(true_fn, false_fn, text):
    with pytest.raises(UsageError, match=text):
        layers.cond(below(x_fed(), 1.0), true_fn, false_fn)


def test_branches_may_differ_in_shape_and_element_type():
    x = x_fed()
    one, two = layers.cond(below(x, 1.0),
                           lambda: (fill_constant([1, 2], "int32", 1), fill_constant([2, 3], "bool", True)),
                           lambda: (fill_constant([3, 4], "float32", 3.5), fill_constant([4, 5], "int64", 2)))
    for value, kinds in ((0.0, [("int32", (1, 2)), ("bool", (2, 3))]), (5.0, [("float32", (3, 4)), ("int64", (4, 5))])):
        found = Executor().run(feed={"x": np.array([value], "float32")}, fetch_list=[one, two])
        assert [(got.dtype.name, got.shape) for got in found] == kinds
        assert float(found[0].max()) == (1 if value == 0.0 else 3.5)


def test_a_list_of_conditions():
    x = x_fed()
    pairs = [(below(x, 1.0), lambda: scale(x, 1.0)), (below(x, 2.0), lambda: scale(x, 10.0))]
    out = layers.case(pairs, default=lambda: scale(x, 100.0))
    last = layers.case(pairs)
    assert values([out, last], [0.5, 1.5, 3.0]) == [[0.5, 0.5], [15.0, 15.0], [300.0, 30.0]]


@pytest.mark.parametrize("functions, found", [
    (lambda f: {1: f(10.0), 3: f(30.0)}, [99.0, 10.0, 30.0]), (lambda f: [f(0.0), f(1.0)], [0.0, 1.0, 99.0]),
    (lambda f: [(3, f(3.0)), (0, f(0.5))], [0.5, 99.0, 3.0])])
def test_a_number_chooses_the_function(functions, found):
    index = x_fed("int64")
    out = layers.switch_case(index, functions(lambda value: lambda: fill_constant([1], "float32", value)),
                             default=lambda: fill_constant([1], "float32", 99.0))
    assert values([out], [0, 1, 3], "int64") == [[one] for one in found]


def test_a_loop_by_functions():
    x = x_fed()
    i, total = layers.while_loop(lambda i, total: less_than(i, x), lambda i, total: [scale(i, 1.0, 1.0), total + i],
                                 [fill_constant([1], "float32", 0.0), fill_constant([1], "float32", 0.0)])
    assert values([i, total], [4.0, 0.0]) == [[4.0, 6.0], [0.0, 0.0]]


def test_a_loop_that_cannot_end_is_refused():
    x = x_fed()
    with pytest.raises(UsageError, match="never writes its condition"):
        with layers.While(below(x, 1.0)).block():
            scale(x, 2.0)


def test_a_condition_is_a_bool():
    with pytest.raises(UsageError, match="float32"):
        layers.While(x_fed())
    with pytest.raises(UsageError, match="cond.*bool"):
        layers.cond(True, None, None)


def test_parameters_made_in_a_body_belong_to_block_0():
    x = data("image", [3])
    layers.cond(below(fill_constant([1], "float32", 0.0), 1.0), lambda: fc(x, 2), lambda: fc(x, 2))
    names = [param.name for param in default_main_program().all_parameters()]
    assert len(names) == 4 and all(default_main_program().global_block().has_var(name) for name in names)
    assert {name for op in default_startup_program().global_block().ops for name in op.output_arg_names} == set(names)


def test_places_to_run_on_are_one_and_the_body_is_inline():
    parallel = layers.ParallelDo(layers.get_places(device_count=4))
    x = x_fed()
    with parallel.do():
        parallel.write_output(scale(parallel.read_input(x), 2.0))
    assert values([parallel()], [3.0]) == [[6.0]]
    assert default_main_program().num_blocks == 1
    with pytest.raises(UsageError, match="write_output"):
        layers.ParallelDo(None)()
