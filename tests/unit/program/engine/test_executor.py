"""fleet_mpi/program/engine/executor.py, plan.py, feeding.py, fetched.py."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.errors import Diverged, MissingFeed, ProgramError, UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import MOST_SCOPES, Executor
from fleet_mpi.program.engine.scope import Scope, Tensor, global_scope
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.program.layers.host_calls import py_func
from tests.unit.program.building import add, apply, data, mean, mul, parameter

X = np.arange(6, dtype="float32").reshape(3, 2)


def plans(executor):
    return [plan for known in executor._compiled.values() for plan in known().plans.values()]


def test_all_forms_of_a_call_give_the_same():
    y = add(data("x", [-1, 2]), parameter("w", [10, 20]))
    exe, main = Executor(), default_main_program()
    want = X + [10, 20]
    calls = [exe.run(main, {"x": X}, [y]), exe.run(program=main, feed={"x": X}, fetch_list=[y.name]),
             exe.run(feed={"x": X}, fetch_list=[y, "w"])[:1], exe.run(main, feed=[{"x": X}], fetch_list=y),
             exe.run(main, feed={"x": X.tolist()}, fetch_list=[y], use_program_cache=True)]
    assert all(np.array_equal(result[0], want) for result in calls)
    assert exe.run(main, feed={"x": X}) == []


def test_a_repeated_step_uses_one_plan_and_another_batch_size_a_second():
    y = add(data("x", [-1, 2]), parameter("w", [1, 2]))
    exe = Executor()
    for rows in (3, 3, 2, 3):
        assert exe.run(feed={"x": X[:rows]}, fetch_list=[y])[0].shape == (rows, 2)
    assert len(plans(exe)) == 2


def test_a_changed_program_gets_a_new_plan():
    x = data("x", [-1, 2])
    exe = Executor()
    y = add(x, x)
    exe.run(feed={"x": X}, fetch_list=[y])
    z = mul(y, x)
    assert (exe.run(feed={"x": X}, fetch_list=[z])[0] == 2 * X * X).all()


def test_setting_a_tensor_in_place_or_by_a_new_array_is_seen_by_the_next_run():
    y = mul(data("x", [-1, 2]), parameter("w", [1, 2]))
    exe = Executor()
    exe.run(feed={"x": X}, fetch_list=[y])
    global_scope().find_var("w").get_tensor().set(np.array([3, 4], "float32"))
    assert (exe.run(feed={"x": X}, fetch_list=[y])[0] == X * [3, 4]).all()
    global_scope().var("w").put(np.array([5, 6], "float32"))
    assert (exe.run(feed={"x": X}, fetch_list=[y])[0] == X * [5, 6]).all()


def test_results_are_the_scripts_to_keep():
    y = add(data("x", [-1, 2]), parameter("w", [0, 0]))
    exe = Executor()
    first, = exe.run(feed={"x": X}, fetch_list=[y])
    exe.run(feed={"x": X + 1}, fetch_list=[y])
    assert (first == X).all()


def test_a_fed_array_is_never_written_to():
    x = data("x", [-1, 2])
    y = add(add(x, x), x)
    fed = X.copy()
    Executor().run(feed={"x": fed}, fetch_list=[y])
    assert (fed == X).all()


def test_scalars_have_shape_one_and_convert_like_numbers():
    m = mean(data("x", [-1, 2]))
    value, = Executor().run(feed={"x": X}, fetch_list=[m])
    assert value.shape == (1,) and value[0] == 2.5
    assert float(value) == 2.5 and "%.2f" % value == "2.50" and f"{value:.1f}" == "2.5"
    assert float(value + value) == 5.0 and np.mean([value]) == 2.5


def test_tensors_come_back_with_their_lod_when_no_numpy_is_asked_for():
    y = add(data("x", [-1, 2], lod_level=1), parameter("w", [0, 0]))
    fed = Tensor(X)
    fed.set_recursive_sequence_lengths([[1, 2]])
    result, = Executor().run(feed={"x": fed}, fetch_list=[y], return_numpy=False)
    assert result.recursive_sequence_lengths() == [[1, 2]] and np.array(result).shape == (3, 2)


@pytest.mark.parametrize("feed, words", [
    ({}, ["'x'", "feed it"]),
    ({"x": X[:, :1]}, ["'x'", "[-1, 2]", "[3, 1]"]),
    ({"x": X.astype(complex)}, ["'x'", "float32", "complex128", "astype"]),
    ({"x": [["a", "b"]]}, ["'x'", "float32"]),
    ("x", ["dictionary"])])
def test_a_wrong_feed_is_a_sentence(feed, words):
    y = add(data("x", [-1, 2], need_check_feed=True), parameter("w", [0, 0]))
    with pytest.raises((ProgramError, UsageError)) as error:
        Executor().run(feed=feed, fetch_list=[y])
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_set_of_one_is_fetched_and_one_of_more_has_no_order():
    y = add(data("x", [-1, 2]), parameter("w", [3, 4]))
    assert (Executor().run(feed={"x": X}, fetch_list={y})[0] == X + [3, 4]).all()
    with pytest.raises(ProgramError, match="fetch_list: a set has no order, got one of 2: give a list"):
        Executor().run(feed={"x": X}, fetch_list={y, "w"})


def test_a_shape_declared_without_a_check_binds_only_as_far_as_the_ops_need():
    x = data("x", [-1, 50, 2])
    y = mul(x, x)
    for fed in (X[:, None], X, X[0], X[0, :1]):
        assert np.array_equal(Executor().run(feed={"x": fed}, fetch_list=[y])[0], fed * fed)
    turned = apply("transpose2", {"X": x}, axis=[0, 2, 1])
    with pytest.raises(ProgramError, match=r"feed 'x': expected shape \[-1, 50, 2\].*got \[3, 2\]; op 'transpose2'"):
        Executor().run(feed={"x": X}, fetch_list=[turned])


def test_a_feed_without_its_last_dimension_is_not_stretched_against_one_that_has_it():
    label, predicted = data("label", [-1, 1]), data("predicted", [-1, 1])
    out = apply("elementwise_sub", {"X": predicted, "Y": label})
    column = np.ones((3, 1), "float32")
    with pytest.raises(ProgramError, match=r"feed 'label'.*would make \[3, 3\]"):
        Executor().run(feed={"label": column[:, 0], "predicted": column}, fetch_list=[out])
    one = Executor().run(feed={"label": column[0], "predicted": column}, fetch_list=[out])[0]
    assert np.array_equal(one, np.zeros((3, 1)))


def test_integers_are_not_fed_with_fractions():
    data("i", [-1], dtype="int64")
    with pytest.raises(ProgramError, match="int64.*float32"):
        Executor().run(feed={"i": np.ones(2, "float32")}, fetch_list=["i"])


def test_doubles_and_small_ints_are_converted():
    x, i = data("x", [-1, 2]), data("i", [-1], dtype="int64")
    y, j = add(x, x), add(i, i)
    got, ints = Executor().run(feed={"x": X.astype("float64"), "i": np.array([1], "int32")}, fetch_list=[y, j])
    assert got.dtype == np.float32 and ints.dtype == np.int64 and ints[0] == 2


def test_a_parameter_without_value_asks_for_the_startup_program():
    param = default_main_program().global_block().create_parameter(name="w", shape=[2])
    y = add(data("x", [-1, 2]), param)
    with pytest.raises(MissingFeed, match="startup"):
        Executor().run(feed={"x": X}, fetch_list=[y])


def test_fetching_what_does_not_exist_names_the_nearest():
    add(data("x", [-1, 2]), parameter("w", [0, 0]), out="result")
    with pytest.raises(ProgramError, match="'result'"):
        Executor().run(feed={"x": X}, fetch_list=["resut"])


def test_ops_nobody_needs_do_not_run_and_need_no_feed():
    x, label = data("x", [-1, 2]), data("label", [-1, 2])
    y = add(x, x)
    mean(add(y, label))
    assert (Executor().run(feed={"x": X}, fetch_list=[y])[0] == 2 * X).all()


def test_nan_is_found_where_it_is_made():
    x = data("x", [-1, 2])
    quotient = apply("elementwise_div", {"X": x, "Y": x}, out="quotient")
    loss = mean(quotient)
    with settings.override(FLAGS_check_nan_inf=True), np.errstate(all="ignore"):
        with pytest.raises(Diverged, match=r"elementwise_div.*building\.py:\d+.*'quotient'.*1 value.*of 6"):
            Executor().run(feed={"x": X}, fetch_list=[loss])


def test_scopes_keep_values_apart():
    y = mul(data("x", [-1, 2]), parameter("w", [1, 2]))
    other = Scope()
    other.var("w").get_tensor().set(np.array([7, 7], "float32"))
    exe = Executor()
    assert (exe.run(feed={"x": X}, fetch_list=[y], scope=other)[0] == 7 * X).all()
    assert (exe.run(feed={"x": X}, fetch_list=[y])[0] == X * [1, 2]).all()


def test_close_lets_go_of_the_memory():
    y = add(data("x", [-1, 2]), parameter("w", [0, 0]))
    exe = Executor()
    exe.run(feed={"x": X}, fetch_list=[y])
    plan = weakref.ref(plans(exe)[0])
    exe.close()
    gc.collect()
    assert plan() is None


def test_temporaries_share_memory_without_meeting():
    """A long chain, large enough to be laid out: its results are right and its arena is a few buffers."""
    rows = 200_000
    x = data("x", [-1, 2])
    one = parameter("one", [1, 1])
    chain = x
    for _ in range(20):
        chain = add(chain, one)
    kept = mul(add(x, one), chain)
    exe, fed = Executor(), np.random.default_rng(0).normal(size=(rows, 2)).astype("float32")
    got, = exe.run(feed={"x": fed}, fetch_list=[kept])
    np.testing.assert_allclose(got, (fed + 1) * (fed + 20), rtol=1e-5)
    arena = exe.compiled(default_main_program(), global_scope()).arena
    assert arena._bytes.size <= 4 * fed.nbytes + 4096


def test_gradients_stay_right_when_memory_is_shared():
    rows = 100_000
    x, w = data("x", [-1, 4]), parameter("w", [1, 2, 3, 4])
    hidden = mul(x, w)
    loss = mean(mul(add(hidden, x), hidden))
    (param, grad), = append_backward(loss)
    fed = np.random.default_rng(1).normal(size=(rows, 4)).astype("float32")
    got, = Executor().run(feed={"x": fed}, fetch_list=[grad])
    wide, weights = fed.astype("float64"), np.array([1, 2, 3, 4.0])
    want = ((2 * wide * weights + wide) * wide).sum(0) / wide.size
    np.testing.assert_allclose(got, want, rtol=1e-3)


def test_a_program_is_the_only_thing_to_run():
    with pytest.raises(UsageError, match="Program"):
        Executor().run("main")


def test_an_empty_program_runs():
    assert Executor().run(Program()) == []


def test_two_threads_may_run_one_program():
    h = data("x", [-1, 2])
    for _ in range(10):
        h = apply("scale", {"X": h}, scale=1.0, bias=1.0)
    exe, main, scope, wrong = Executor(), default_main_program(), global_scope(), []

    def run(start):
        for number in range(start, start + 50):
            fed = np.full((500, 2), number, "float32")
            got, = exe.run(main, feed={"x": fed}, fetch_list=[h.name], scope=scope)
            wrong.append(bool((got != number + 10).any()))
    threads = [threading.Thread(target=run, args=(start,)) for start in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [False] * 100 and len(main._compiled) == 1


def test_a_program_that_runs_itself_is_refused():
    x = data("x", [-1, 2])
    y = default_main_program().global_block().create_var(name="y", shape=[-1, 2], dtype="float32")
    exe = Executor()
    py_func(lambda given: exe.run(feed={"x": X}, fetch_list=["y"])[0], x, y)
    for _ in range(2):
        with pytest.raises(UsageError, match="already running"):
            exe.run(feed={"x": X}, fetch_list=["y"])


def test_a_program_that_the_script_drops_takes_its_plans_along():
    exe, main, scope = Executor(), default_main_program(), Scope()
    y = add(data("x", [-1, 2]), data("z", [-1, 2]))
    for _ in range(3):
        test = main.clone(for_test=True)
        exe.run(test, feed={"x": X, "z": X}, fetch_list=[y.name], scope=scope)
    arena = weakref.ref(exe.compiled(test, scope).arena)
    program = weakref.ref(test)
    del test
    gc.collect()
    assert program() is None and arena() is None


def test_an_executor_that_the_script_drops_takes_its_plans_along():
    y = add(data("x", [-1, 2]), data("z", [-1, 2]))
    for _ in range(3):
        Executor().run(feed={"x": X, "z": X}, fetch_list=[y])
    gc.collect()
    assert not default_main_program()._compiled


def test_scopes_without_end_do_not_keep_plans_without_end():
    y = add(data("x", [-1, 2]), data("z", [-1, 2]))
    exe = Executor()
    for _ in range(MOST_SCOPES + 5):
        exe.run(feed={"x": X, "z": X}, fetch_list=[y], scope=Scope())
    assert len(default_main_program()._compiled) == MOST_SCOPES


def test_a_flag_set_between_two_runs_is_obeyed():
    quotient = apply("elementwise_div", {"X": data("x", [-1, 2]), "Y": data("x", [-1, 2])})
    exe = Executor()
    exe.run(feed={"x": X}, fetch_list=[quotient])
    with settings.override(FLAGS_check_nan_inf=True), pytest.raises(Diverged):
        exe.run(feed={"x": X}, fetch_list=[quotient])
    exe.run(feed={"x": X}, fetch_list=[quotient])


def test_a_scope_is_the_only_thing_to_run_in():
    with pytest.raises(UsageError, match="Scope"):
        Executor().run(Program(), scope="global")


def test_a_larger_batch_takes_the_place_of_the_memory_of_a_smaller_one():
    """At once: arrays do not wait for the garbage collector."""
    y = add(data("x", [-1, 2]), data("z", [-1, 2]))
    exe, compiled = Executor(), None
    gc.disable()
    try:
        exe.run(feed={"x": X, "z": X}, fetch_list=[y])
        compiled = exe.compiled(default_main_program(), global_scope())
        small = weakref.ref(compiled.arena._bytes)
        large = np.ones((1000, 2), "float32")
        exe.run(feed={"x": large, "z": large}, fetch_list=[y])
        assert small() is None and len(compiled.plans) == 1
    finally:
        gc.enable()


def test_a_program_that_was_run_can_be_copied_by_python():
    y = add(data("x", [-1, 2]), parameter("w", [1, 2]))
    exe = Executor()
    want, = exe.run(feed={"x": X}, fetch_list=[y])
    twin = copy.deepcopy(default_main_program())
    assert twin is not default_main_program() and not twin._compiled
    assert (exe.run(twin, feed={"x": X}, fetch_list=[y.name])[0] == want).all()
