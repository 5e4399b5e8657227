"""Ops of program/ops/combining.py."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def joined(inputs, attrs):
    """Element by element, counting along the axis."""
    pieces, axis = inputs["X"], attrs.get("axis", 0)
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    out, start = np.empty(shape), 0
    for piece in pieces:
        for index in np.ndindex(piece.shape):
            place = list(index)
            place[axis] += start
            out[tuple(place)] = piece[index]
        start += piece.shape[axis]
    return {"Out": out}


def cut(inputs, attrs):
    value, axis, sections = inputs["X"], attrs.get("axis", 0), attrs["sizes"]
    pieces, start = [], 0
    for size in sections:
        pieces.append(np.array([np.moveaxis(value, axis, 0)[start + i] for i in range(size)]))
        start += size
    return {"Out": [np.moveaxis(piece, 0, axis) for piece in pieces]}


CASES = [
    Case("sum", {"X": [x(2, 3), x(2, 3), x(2, 3)]}, {}, lambda i, a: {"Out": i["X"][0] + i["X"][1] + i["X"][2]},
         grads="X"),
    Case("sum", {"X": [x(4)]}, {}, lambda i, a: {"Out": i["X"][0]}, grads="X", note="one"),
    Case("sum", {"X": [x(4), x(4)]}, {}, lambda i, a: {"Out": i["X"][0] + i["X"][1]}, grads="X", note="two"),
    Case("assign", {"X": x(2, 3)}, {}, lambda i, a: {"Out": i["X"]}, grads="X"),
    Case("assign", {"X": np.arange(3)}, {}, lambda i, a: {"Out": i["X"]}, note="whole numbers"),
    Case("concat", {"X": [x(2, 3), x(1, 3)]}, {"axis": 0}, joined, grads="X"),
    Case("concat", {"X": [x(2, 3), x(2, 1), x(2, 2)]}, {"axis": -1}, joined, grads="X", note="last"),
    Case("concat", {"X": [x(2, 3, 2), x(2, 1, 2)]}, {"axis": 1}, joined, grads="X", note="middle"),
    Case("concat", {"X": [x(2, 3)]}, {"axis": 1}, joined, grads="X", note="one"),
    Case("split", {"X": x(4, 3)}, {"num": 2, "sizes": [2, 2]}, cut, grads="X"),
    Case("split", {"X": x(2, 6)}, {"num": 3, "axis": 1, "sizes": [2, 2, 2]}, cut, grads="X", note="axis 1"),
    Case("split", {"X": x(2, 6)}, {"sections": [1, 2, 3], "axis": -1, "sizes": [1, 2, 3]}, cut, grads="X",
         note="sections"),
    Case("split", {"X": x(2, 6)}, {"sections": [4, -1], "axis": 1, "sizes": [4, 2]}, cut, grads="X", note="-1"),
]
PIECES, WHOLE, ONE = [x(2, 3), x(2, 1)], x(2, 6), np.array([1], "int32")
THIRDS = [WHOLE[:, :1], WHOLE[:, 1:3], WHOLE[:, 3:]]
CASES += [
    Case("concat", {"X": PIECES, "AxisTensor": ONE}, {}, {"Out": np.concatenate(PIECES, 1)}, grads="X",
         note="along a variable"),
    Case("split", {"X": WHOLE, "AxisTensor": ONE}, {"num": 2}, {"Out": [WHOLE[:, :3], WHOLE[:, 3:]]}, grads="X",
         note="along a variable"),
    Case("split", {"X": WHOLE, "SectionsTensorList": [ONE, ONE + 1, ONE - 2]}, {"axis": 1, "sections": [-1, 2, -1]},
         {"Out": THIRDS}, grads="X", note="sections by variables"),
    Case("split", {"X": WHOLE, "SectionsTensorList": [ONE, ONE + 1, ONE + 2], "AxisTensor": ONE},
         {"sections": [-1, -1, -1]}, {"Out": THIRDS}, grads="X", note="all by variables"),
]
for axis in (0, 1, -1):
    pieces = [x(2, 3), x(2, 3), x(2, 3)]
    whole = np.moveaxis(np.array(pieces), 0, axis)
    CASES.append(Case("stack", {"X": pieces}, {"axis": axis}, {"Y": whole}, grads="X", by="Y", note=f"axis{axis}"))
    CASES.append(Case("unstack", {"X": whole}, {"axis": axis, "num": 3}, {"Y": pieces}, grads="X", by="Y",
                      note=f"axis{axis}"))
CASES.append(Case("unstack", {"X": np.array([1.0, 2.0])}, {"axis": 0, "num": 2},
                  {"Y": [np.array(1.0), np.array(2.0)]}, note="a vector"))

test_forward, test_gradient, test_device = checks(CASES)


def test_the_gradient_of_a_piece_that_nobody_reads_is_zero():
    case = Case("split", {"X": x(2, 4)}, {"num": 2, "axis": 1, "sizes": [2, 2]}, cut, grads="X")
    built = Built(case)
    block = built.program.global_block()
    from fleet_mpi.program.build.backward import gradients
    with program_guard(built.program, Program()):
        found = gradients([block.var("Out_out_1")], [block.var("X_0")])
    got, = built.run([found[0].name])
    assert (got == [[0, 0, 1, 1], [0, 0, 1, 1]]).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 1))
def test_what_is_split_and_concatenated_is_as_before(sizes, other, axis):
    shape = [other, sum(sizes)] if axis else [sum(sizes), other]
    value = np.arange(sum(sizes) * other, dtype="float64").reshape(shape)
    case = Case("split", {"X": value}, {"sections": sizes, "axis": axis, "sizes": sizes}, cut)
    built = Built(case)
    block = built.program.global_block()
    block.append_op("concat", {"X": built.outputs["Out"]}, {"Out": ["again"]}, {"axis": axis})
    got, = built.run(["again"])
    assert (got == value).all()


@pytest.mark.parametrize("type, attrs, outputs", [("split", {"num": 2, "axis": 1}, 2),
                                                  ("split", {"sections": [1, 1], "axis": 1}, 2),
                                                  ("split", {"sections": [-1, -1], "axis": 1}, 2)])
def test_pieces_that_do_not_add_up_are_refused(type, attrs, outputs):
    value = static_data("value", [2, 3])
    with pytest.raises(ProgramError, match="split"):
        value.block.append_op(type, {"X": [value]}, {"Out": [f"out{i}" for i in range(outputs)]}, attrs)


def test_shapes_that_do_not_agree_are_refused_with_all_of_them():
    one, other = static_data("one", [2, 3]), static_data("other", [3, 3])
    for type in ("concat", "sum", "stack"):
        slot = "Y" if type == "stack" else "Out"
        attrs = {} if type == "sum" else {"axis": 1}
        with pytest.raises(ProgramError, match=r"\[2, 3\], \[3, 3\]"):
            one.block.append_op(type, {"X": [one, other]}, {slot: ["out"]}, attrs)
