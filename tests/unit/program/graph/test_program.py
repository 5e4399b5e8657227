"""fleet_mpi/program/graph/program.py, block.py, operator.py, variable.py."""

import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program, default_main_program, program_guard, prune
from fleet_mpi.program.graph.types import Role
from fleet_mpi.program.layers.control_flow import ConditionalBlock
from tests.unit.program.building import add, apply, data, mean, mul, parameter


def test_layers_write_into_the_program_of_the_guard():
    other = Program()
    with program_guard(other):
        data("x", [-1, 2])
    assert other.global_block().has_var("x") and not default_main_program().global_block().has_var("x")


def test_a_guard_takes_programs_only():
    with pytest.raises(UsageError, match="Program"):
        with program_guard("main"):
            pass


def test_every_change_moves_the_version_on():
    program = default_main_program()
    seen = [program.version]
    x = data("x", [-1, 2])
    seen.append(program.version)
    op = add(x, x).op
    seen.append(program.version)
    op._set_attr("axis", 0)
    seen.append(program.version)
    program.random_seed = 5
    seen.append(program.version)
    assert seen == sorted(set(seen))


def test_a_clone_shares_nothing():
    y = mul(data("x", [-1, 2]), parameter("w", [1, 2]))
    program = default_main_program()
    twin = program.clone()
    assert str(twin) == str(program)
    twin.global_block().ops[0]._set_attr("axis", 1)
    twin.global_block().append_op("mean", {"X": y.name}, {"Out": "m"})
    assert program.global_block().ops[0].attr("axis") == -1 and len(program.global_block().ops) == 1


def test_a_clone_for_test_loses_what_trains():
    append_backward(mean(mul(data("x", [-1, 2]), parameter("w", [1, 2]))))
    frozen = default_main_program().clone(for_test=True)
    assert [op.type for op in frozen.global_block().ops] == ["elementwise_mul", "mean"]


def test_pruning_keeps_what_the_targets_need_and_stops_at_feeds():
    x = data("x", [-1, 2])
    a = add(x, x, out="a")
    b = add(a, a, out="b")
    add(b, b, out="c")
    kept = prune(default_main_program(), [b])
    assert [op.output("Out") for op in kept.global_block().ops] == [["a"], ["b"]]
    assert set(kept.global_block().vars) == {"x", "a", "b"}
    kept = prune(default_main_program(), ["c"], feeds=["b"])
    assert [op.output("Out") for op in kept.global_block().ops] == [["c"]]


def test_a_program_prints_op_by_op_with_shapes():
    mean(add(data("x", [-1, 2]), parameter("w", [1, 2])))
    text = str(default_main_program())
    assert "var x : LOD_TENSOR shape(-1, 2) float32" in text
    assert "param w : LOD_TENSOR shape(2,) float32 persistable" in text
    assert "Out=[elementwise_add_0] = elementwise_add(X=[x], Y=[w]) {axis: -1, op_role: 0}" in text


def test_ops_carry_the_role_of_the_guard_they_are_made_under():
    x, program = data("x", [1]), default_main_program()
    with program._lr_schedule_guard():
        add(x, x)
    with program._optimized_guard(["w", "w@GRAD"]):
        add(x, x)
    schedule, optimize = program.global_block().ops
    assert Role(schedule.attr("op_role")) == Role.LRSched
    assert Role(optimize.attr("op_role")) == Role.Optimize and optimize.attr("op_role_var") == ["w", "w@GRAD"]


def test_an_unknown_op_slot_or_attribute_is_refused_with_the_nearest():
    x = data("x", [1])
    block = default_main_program().global_block()
    with pytest.raises(ProgramError, match="elementwise_add"):
        block.append_op("elementwise_ad", {"X": x, "Y": x}, {"Out": "o"})
    with pytest.raises(ProgramError, match="no input 'Z'"):
        block.append_op("elementwise_add", {"X": x, "Z": x}, {"Out": "o"})
    with pytest.raises(ProgramError, match="'Y' is missing"):
        block.append_op("elementwise_add", {"X": x}, {"Out": "o"})
    with pytest.raises(ProgramError, match="axis"):
        add(x, x).op.attr("axes")


def test_shapes_that_do_not_fit_name_the_op_and_the_line():
    x, w = data("x", [-1, 3]), data("w", [4, 2])
    with pytest.raises(ProgramError, match=r"op 'mul'.*building\.py:\d+.*3 columns.*4 rows"):
        apply("mul", {"X": x, "Y": w})


def test_a_variable_is_true():
    assert data("x", [2])


def test_two_parameters_of_one_name_must_have_one_shape():
    parameter("w", [1, 2])
    assert parameter("w", [3, 4]) is default_main_program().global_block().var("w")
    with pytest.raises(ProgramError, match="another name"):
        parameter("w", [1, 2, 3])


def test_a_nested_block_sees_its_parents_variables():
    data("x", [1])
    program = default_main_program()
    inner = program._create_block()
    assert inner.find_var("x") is program.global_block().var("x") and not inner.has_var("x")
    program._rollback()
    assert program.current_block() is program.global_block()


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "5"])
def test_a_seed_is_a_whole_number_from_zero_up(seed):
    with pytest.raises(UsageError, match="random_seed"):
        Program().random_seed = seed


def test_an_op_that_does_not_fit_is_not_added():
    x, w = data("x", [-1, 2]), parameter("w", [1, 2, 3])
    version = default_main_program().version
    with pytest.raises(ProgramError):
        default_main_program().global_block().append_op("elementwise_add", {"X": x, "Y": w}, {"Out": "sum"})
    assert default_main_program().global_block().ops == [] and default_main_program().version == version


def test_a_program_pruned_to_a_gradient_still_knows_its_shapes():
    x, w = data("x", [-1, 2]), parameter("w", [1, 2])
    (_, grad), = append_backward(mean(add(x, w)))
    pruned = prune(default_main_program(), [grad])
    got, = Executor().run(pruned, feed={"x": [[1, 2], [3, 4]]}, fetch_list=[grad.name])
    assert got.tolist() == [0.5, 0.5]


def test_a_renamed_variable_is_renamed_for_gradients_and_nested_blocks_too():
    main = default_main_program()
    x, w, flag = data("x", [-1, 2]), parameter("w", [1, 2]), data("flag", [1], "bool")
    hidden = add(x, w, out="hidden")
    (_, grad), = append_backward(mean(hidden))
    with ConditionalBlock([flag], is_scalar_condition=True).block():
        main.current_block().append_op("scale", {"X": hidden}, {"Out": hidden}, {"scale": 2.0})
    main.global_block()._rename_var("hidden", "renamed")
    feed = {"x": [[1, 2], [3, 4]], "flag": [True]}
    got, value = Executor().run(feed=feed, fetch_list=[grad, "renamed"])
    assert got.tolist() == [0.5, 0.5] and value.tolist() == [[4, 8], [8, 12]]
    assert "hidden" not in str(main).replace("hidden@GRAD", "")


def test_a_name_stands_for_one_shape():
    block, x = default_main_program().global_block(), data("x", [-1, 2])
    assert data("x", [None, 2]) is x and block.create_var(name="x") is x
    with pytest.raises(ProgramError, match=r"'x' exists with shape \(-1, 2\).*\(-1, 3\)"):
        data("x", [-1, 3])


def test_a_variable_made_persistable_between_two_runs_is_kept():
    y = add(data("x", [-1, 2]), parameter("w", [1, 2]))
    exe = Executor()
    exe.run(feed={"x": [[1, 1]]}, fetch_list=[y])
    y.persistable = True
    exe.run(feed={"x": [[1, 1]]}, fetch_list=[y])
    assert global_scope().find_var(y.name).get_tensor().numpy().tolist() == [[2, 3]]
