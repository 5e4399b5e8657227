"""Ops of program/ops/positions.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, StandInPlace, check_shapes_at_build, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def added(inputs, attrs):
    out = inputs["X"].copy()
    for where in np.ndindex(inputs["Index"].shape[:-1]):
        out[tuple(inputs["Index"][where])] += inputs["Updates"][where]
    return {"Out": out}


def distinct(inputs, attrs):
    values, axis = inputs["X"], attrs.get("axis")
    rows = [one.tolist() for one in np.moveaxis(values, axis, 0)] if axis is not None else values.reshape(-1).tolist()
    found = sorted({str(row): row for row in rows}.values())
    flat = np.array(found)
    return {"Out": flat if axis is None else np.moveaxis(flat, 0, axis),
            "Indices": np.array([rows.index(one) for one in found]),
            "Index": np.array([found.index(one) for one in rows]),
            "Counts": np.array([rows.count(one) for one in found])}


def focus(inputs, attrs):
    """Element by element in descending order, those whose row and column are free."""
    given = np.moveaxis(inputs["X"], attrs["axis"], 1)
    out = np.zeros_like(given)
    for n, sample in enumerate(given):
        for index in attrs["indexes"]:
            rows, columns = set(), set()
            for place in sorted(np.ndindex(sample[index].shape), key=lambda at: -sample[index][at]):
                if place[0] not in rows and place[1] not in columns:
                    rows.add(place[0])
                    columns.add(place[1])
                    out[n, :, place[0], place[1]] = 1
    return {"Out": np.moveaxis(out, 1, attrs["axis"])}


def sampled(inputs, attrs):
    return {"Out": np.array([[row[i] for i in places] for row, places in zip(inputs["X"], inputs["Index"])])}


MASK = rng.random((3, 4)) > 0.5
CASES = [
    Case("index_sample", {"X": x(3, 4), "Index": np.array([[0, 3, 3], [1, 1, 1], [2, 0, 3]])}, {}, sampled, grads="X"),
    Case("index_sample", {"X": x(2, 3), "Index": np.array([[2], [0]], "int32")}, {}, sampled, grads="X", note="int32"),
    Case("unique_with_counts", {"X": np.array([5, 2, 5, 3, 2])}, {},
         {"Out": np.array([5, 2, 3]), "Index": np.array([0, 1, 0, 2, 1], "int32"),
          "Count": np.array([2, 2, 1], "int32")}),
    Case("scatter_nd_add", {"X": x(4), "Index": np.array([[1], [3], [1]]), "Updates": x(3)}, {}, added,
         grads="X Updates"),
    Case("scatter_nd_add", {"X": x(3, 2, 2), "Index": np.array([[[0, 1], [2, 0]], [[0, 1], [1, 1]]]),
                            "Updates": x(2, 2, 2)}, {}, added, grads="X Updates", note="parts"),
    Case("masked_select", {"X": x(3, 4), "Mask": MASK}, {}, lambda inputs, attrs: {"Y": inputs["X"][MASK]}, grads="X",
         by="Y"),
    Case("unique_sorted", {"X": np.array([3, 1, 3, 7, 1])}, {}, distinct),
    Case("unique_sorted", {"X": np.array([[3.0, 1], [2, 0], [3, 1]])}, {"axis": 0}, distinct, note="rows"),
    Case("unique_sorted", {"X": np.array([[3, 1, 3], [2, 0, 2]])}, {"axis": 1}, distinct, note="columns"),
    Case("similarity_focus", {"X": x(2, 3, 2, 4)}, {"axis": 1, "indexes": [0]}, focus),
    Case("similarity_focus", {"X": x(2, 3, 3, 2)}, {"axis": 3, "indexes": [0, 1]}, focus, note="two"),
]
LIKELY = np.array([[0.0, 1.0, 3.0], [5.0, 0.0, 5.0]])
DRAWS = [Case("multinomial", {"X": LIKELY}, {"num_samples": 4000, "replacement": True}, {"Out": np.zeros((2, 4000))}),
         Case("multinomial", {"X": LIKELY}, {"num_samples": 2}, {"Out": np.zeros((2, 2))}),
         Case("multinomial", {"X": LIKELY[0]}, {"num_samples": 2}, {"Out": np.zeros(2)})]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("place", [None, StandInPlace()], ids=["host", "device"])
def test_classes_are_drawn_by_their_probabilities(place):
    built = Built(DRAWS[0])
    found, = built.run(built.outputs["Out"], place)
    shares = [[np.mean(row == label) for label in range(3)] for row in found]
    np.testing.assert_allclose(shares, [[0, 0.25, 0.75], [0.5, 0, 0.5]], atol=0.03)
    assert found.dtype == np.int64


@pytest.mark.parametrize("case", DRAWS[1:], ids=["rows", "line"])
def test_without_replacement_a_class_comes_once_and_one_of_probability_0_never(case):
    check_shapes_at_build(case)
    built = Built(case)
    found, = built.run(built.outputs["Out"])
    rows = found.reshape(-1, 2).tolist()
    assert sorted(rows[0]) == [1, 2] and all(sorted(row) == [0, 2] for row in rows[1:])


def test_the_values_of_a_row_gradient_become_a_tensor():
    program, scope = Program(), Scope()
    with program_guard(program, Program()):
        block = program.global_block()
        block.create_var(name="rows", shape=[6, 2], dtype="float32", type=VarType.SELECTED_ROWS, persistable=True)
        block.create_var(name="out", dtype=None)
        block.append_op("get_tensor_from_selected_rows", {"X": ["rows"]}, {"Out": ["out"]})
    values = np.arange(6, dtype="float32").reshape(3, 2)
    scope.var("rows").value = Rows(np.array([4, 1, 4]), values, 6)
    found, = Executor().run(program, fetch_list=["out"], scope=scope)
    np.testing.assert_array_equal(found, values)


def test_a_position_outside_is_refused():
    built = Built(Case("scatter_nd_add", {"X": x(2, 3), "Index": np.array([[0, 3]]), "Updates": x(1)}, {},
                       {"Out": np.zeros((2, 3))}))
    with pytest.raises(ProgramError, match="id 3 at position 0 is outside dimension 1 of X"):
        built.run(built.outputs["Out"])


@pytest.mark.parametrize("type, inputs, attrs, words", [
    ("scatter_nd_add", {"X": "a", "Index": "ids", "Updates": "a"}, {}, "expected Updates"),
    ("masked_select", {"X": "a", "Mask": "a"}, {}, "expected a bool Mask"),
    ("similarity_focus", {"X": "a"}, {}, "expected X of 4 dimensions"),
    ("multinomial", {"X": "a"}, {"num_samples": 4}, "at most as many samples as classes")])
def test_what_does_not_fit_is_refused_while_building(type, inputs, attrs, words):
    given = {"a": static_data("a", [2, 3]), "ids": static_data("ids", [4, 1], "int64")}
    with pytest.raises(ProgramError, match=words):
        given["a"].block.append_op(type, {slot: [given[name]] for slot, name in inputs.items()},
                                   {"Y" if type == "masked_select" else "Out": ["out"]}, attrs)


def test_a_column_that_does_not_exist_is_refused_by_number():
    wrong = Case("index_sample", {"X": np.zeros((2, 3)), "Index": np.array([[0], [3]])}, {}, sampled)
    wrong.expect = {"Out": np.zeros((2, 1))}
    with pytest.raises(ProgramError, match="Index has 3 at position 1: expected numbers of X's columns, 0 to 2"):
        Built(wrong).run(["Out_out_0"])
