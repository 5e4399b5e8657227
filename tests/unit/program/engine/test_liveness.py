"""Which ops run, and what they read first."""

from fleet_mpi.program.engine.liveness import has_effect, is_dynamic, live_ops, reads_of
from fleet_mpi.program.graph.program import default_main_program
from tests.unit.program.building import add, apply, data


def types(fetches):
    return [op.type for op in live_ops(default_main_program(), fetches)]


def append_body(fill):
    """A conditional_block whose body is what ``fill()`` adds; returns the op."""
    program = default_main_program()
    flag = data("flag", [1], "bool")
    body = program._create_block()
    fill()
    program._rollback()
    return program.global_block().append_op(
        "conditional_block", {"Cond": [flag]}, {"Out": [name for op in body.ops for name in op.output_arg_names
                                                        if name not in body.vars]},
        {"sub_block": body.idx, "is_scalar_condition": True})


def test_only_what_leads_to_a_fetch_runs():
    x = data("x", [1])
    wanted, _ = add(x, x), apply("mean", {"X": x})
    assert types([wanted.name]) == ["elementwise_add"] and types([]) == []


def test_what_is_kept_in_the_scope_is_written_though_nobody_fetches_it():
    x = data("x", [1])
    default_main_program().global_block().create_var(name="kept", shape=[1], persistable=True)
    default_main_program().global_block().append_op("assign", {"X": [x]}, {"Out": ["kept"]})
    assert types([]) == ["assign"]


def test_a_body_needs_what_it_reads_before_it_writes_it():
    x, y = data("x", [1]), data("y", [1])
    outer = apply("assign", {"X": x}, out="outer")

    def fill():
        inner = add(y, y)
        block = default_main_program().current_block()
        block.append_op("assign", {"X": [inner]}, {"Out": [outer]})
        add(outer, inner)
    op = append_body(fill)
    assert reads_of(op) == ["flag", "y"]
    assert types([outer.name]) == ["assign", "conditional_block"]


def test_effects_and_unknown_shapes_inside_a_body_count_for_the_op_around_it():
    x = data("x", [1])
    quiet = append_body(lambda: add(x, x))
    loud = append_body(lambda: apply("print", {"In": x}))
    dynamic = append_body(lambda: apply("where_index", {"Condition": data("flag", [1], "bool")}))
    assert not has_effect(quiet) and has_effect(loud)
    assert not is_dynamic([quiet, loud]) and is_dynamic([quiet, dynamic])
