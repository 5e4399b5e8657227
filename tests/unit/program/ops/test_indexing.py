"""Ops of program/ops/indexing.py."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, check_forward, check_shapes_at_build, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def picked(value, axes, starts, ends, strides=None):
    """The positions a slice means, one dimension after the other, by Python's rule for lists."""
    for axis, start, end, stride in zip(axes, starts, ends, strides or [1] * len(axes)):
        places = list(range(value.shape[axis]))[start:end:stride]
        value = np.array([np.moveaxis(value, axis, 0)[i] for i in places]).reshape(
            (len(places),) + np.moveaxis(value, axis, 0).shape[1:])
        value = np.moveaxis(value, 0, axis)
    return value


def sliced(shape, axes, starts, ends, strides=None, drop=(), result=None):
    value = x(*shape)
    attrs = {"axes": axes, "starts": starts, "ends": ends, "decrease_axis": list(drop)}
    if strides:
        attrs["strides"] = strides
    out = picked(value, axes, starts, ends, strides)
    return Case("strided_slice" if strides else "slice", {"Input": value}, attrs,
                {"Out": out.reshape(result) if result else out}, grads="Input", note=f"{shape}{axes}{starts}{ends}")


def rows_of(inputs, attrs):
    return {"Out": np.array([inputs["X"][i] for i in inputs["Index"].ravel()])}


CASES = [
    sliced((4, 5), [0], [1], [3]),
    sliced((4, 5), [0, 1], [-3, 0], [10, -1]),
    sliced((2, 3, 4), [2, 0], [1, 0], [3, 1]),
    sliced((4, 5), [0], [2], [3], drop=[0], result=(5,)),
    sliced((2, 3, 4), [0, 2], [1, 1], [2, 2], drop=[0, 2], result=(3,)),
    sliced((3,), [0], [1], [2], drop=[0], result=(1,)),
    sliced((6, 2), [0], [0], [6], [2]),
    sliced((6, 3), [0, 1], [4, 0], [0, 3], [-2, 1]),
    sliced((4,), [0], [3], [-100], [-1]),
    Case("slice", {"Input": np.arange(6.0), "StartsTensor": np.array([1]), "EndsTensor": np.array([4])},
         {"axes": [0]}, {"Out": np.array([1.0, 2, 3])}, grads="Input", note="by variables"),
    Case("slice", {"Input": np.arange(6.0), "StartsTensorList": [np.array([2])]}, {"axes": [0], "ends": [5]},
         {"Out": np.array([2.0, 3, 4])}, grads="Input", note="by a list of variables"),
    Case("strided_slice", {"Input": np.arange(12.0).reshape(2, 6), "StartsTensorList": [np.array([1])],
                           "EndsTensorList": [np.array([6])], "StridesTensorList": [np.array([2])]},
         {"axes": [1], "starts": [-1], "ends": [-1], "strides": [-1]}, {"Out": np.array([[1.0, 3, 5], [7, 9, 11]])},
         grads="Input", note="by lists of variables"),
    Case("strided_slice", {"Input": np.arange(6.0), "StartsTensor": np.array([5]), "EndsTensor": np.array([-9]),
                           "StridesTensor": np.array([-2])}, {"axes": [0]}, {"Out": np.array([5.0, 3, 1])},
         grads="Input", note="backwards by variables"),
    Case("gather", {"X": x(2, 4, 3), "Index": np.array([2, 0, 2]), "Axis": np.array([1], "int32")}, {},
         lambda i, a: {"Out": np.stack([i["X"][:, j] for j in i["Index"]], axis=1)}, grads="X", note="by a variable"),
    Case("gather", {"X": x(4, 3), "Index": np.array([2, 0, 2])}, {}, rows_of, grads="X"),
    Case("gather", {"X": x(4), "Index": np.array([[3], [1]], "int32")}, {}, rows_of, grads="X", note="a vector"),
    Case("gather", {"X": x(2, 4, 3), "Index": np.array([2, 0, 2])}, {"axis": 1},
         lambda i, a: {"Out": np.stack([i["X"][:, j] for j in i["Index"]], axis=1)}, grads="X", note="axis 1"),
    Case("gather_nd", {"X": x(3, 4, 2), "Index": np.array([[0, 1], [2, 3], [0, 1]])}, {},
         lambda i, a: {"Out": np.array([i["X"][p, q] for p, q in i["Index"]])}, grads="X"),
    Case("gather_nd", {"X": x(3, 4), "Index": np.array([[[0, 1]], [[2, 3]]], "int32")}, {},
         lambda i, a: {"Out": np.array([[i["X"][0, 1]], [i["X"][2, 3]]])}, grads="X", note="elements"),
    Case("gather_nd", {"X": x(3, 4), "Index": np.array([[2], [0]])}, {},
         lambda i, a: {"Out": np.array([i["X"][2], i["X"][0]])}, grads="X", note="rows"),
]


def overwritten(inputs, attrs):
    out = inputs["X"].copy()
    for i, row in zip(inputs["Ids"].ravel(), inputs["Updates"]):
        out[i] = row
    return {"Out": out}


def replaced_by_sums(inputs, attrs):
    out = inputs["X"].copy()
    for i in inputs["Ids"]:
        out[i] = 0
    for i, row in zip(inputs["Ids"], inputs["Updates"]):
        out[i] += row
    return {"Out": out}


flags = np.array([[True, False, True], [False, False, True]])
CASES += [
    Case("scatter", {"X": x(4, 3), "Ids": np.array([2, 0]), "Updates": x(2, 3)}, {}, overwritten, grads="X Updates"),
    Case("scatter", {"X": x(4), "Ids": np.array([[1], [3]]), "Updates": x(2)}, {"overwrite": True}, overwritten,
         grads="X Updates", note="a vector"),
    Case("scatter", {"X": x(4, 3), "Ids": np.array([2, 0, 2]), "Updates": x(3, 3)}, {"overwrite": False},
         replaced_by_sums, grads="X Updates", note="sums"),
    Case("one_hot", {"X": np.array([[1], [0], [3]])}, {"depth": 4},
         {"Out": np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])}),
    Case("one_hot", {"X": np.array([[1], [7]])}, {"depth": 3, "allow_out_of_range": True},
         {"Out": np.array([[0, 1, 0], [0, 0, 0]])}, note="out of range"),
    Case("one_hot_v2", {"X": np.array([[1, 0], [2, 2]])}, {"depth": 3},
         {"Out": np.array([[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]])}),
    Case("one_hot", {"X": np.array([[1], [0]]), "depth_tensor": np.array([3], "int32")}, {},
         {"Out": np.array([[0, 1, 0], [1, 0, 0]])}, note="depth by a variable"),
    Case("one_hot_v2", {"X": np.array([1, 0]), "depth_tensor": np.array([2])}, {},
         {"Out": np.array([[0, 1], [1, 0]])}, note="depth by a variable"),
    Case("shard_index", {"X": np.array([[0], [5], [9], [12]])}, {"index_num": 20, "nshards": 4, "shard_id": 1},
         {"Out": np.array([[-1], [0], [4], [-1]])}),
    Case("where", {"Condition": flags, "X": x(2, 3), "Y": x(2, 3)}, {},
         lambda i, a: {"Out": np.array([[p if c else q for c, p, q in zip(*rows)]
                                        for rows in zip(i["Condition"], i["X"], i["Y"])])}, grads="X Y"),
    Case("where_index", {"Condition": flags}, {}, {"Out": np.array([[0, 0], [0, 2], [1, 2]])}),
    Case("unique", {"X": np.array([5, 2, 5, 3, 2])}, {"dtype": "int32"},
         {"Out": np.array([5, 2, 3]), "Index": np.array([0, 1, 0, 2, 1]), "Count": np.array([2, 2, 1])}),
]

test_forward, test_gradient, test_device = checks(CASES)


limits = st.integers(-7, 7)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), limits, limits, st.sampled_from([-2, -1, 1, 2, 3]), st.integers(0, 1))
def test_slices_are_clipped_as_pythons_are(rows, columns, start, end, stride, axis):
    value = np.arange(rows * columns, dtype="float64").reshape(rows, columns)
    places = list(range(value.shape[axis]))
    if stride < 0 and end < -len(places):
        end = -len(places) - 1  # Python has no number for "before the first"; the op takes any
        wanted = places[start::stride]
    else:
        wanted = places[start:end:stride]
    case = Case("strided_slice", {"Input": value},
                {"axes": [axis], "starts": [start], "ends": [end], "strides": [stride]},
                {"Out": np.take(value, np.array(wanted, dtype=int), axis)})
    check_forward(case)
    check_shapes_at_build(case)


@pytest.mark.parametrize("case, wrong", [
    (Case("gather", {"X": x(3, 2), "Index": np.array([0, 3])}, {}, {"Out": x(2, 2)}), 3),
    (Case("gather_nd", {"X": x(3, 2), "Index": np.array([[0, 2]])}, {}, {"Out": x(1)}), 2),
    (Case("scatter", {"X": x(3, 2), "Ids": np.array([-1]), "Updates": x(1, 2)}, {}, {"Out": x(3, 2)}), -1),
    (Case("one_hot", {"X": np.array([[4]])}, {"depth": 4}, {"Out": x(1, 4)}), 4)])
def test_an_id_outside_is_named_with_its_position(case, wrong):
    with pytest.raises(ProgramError, match=rf"op '{case.type}'.* id {wrong} at position \d is outside"):
        Built(case).run(["Out_out_0"])


def test_a_single_element_out_of_range_cannot_be_taken():
    value = static_data("value", [3, 2])
    with pytest.raises(ProgramError, match="cannot be dropped"):
        value.block.append_op("slice", {"Input": [value]}, {"Out": ["out"]},
                              {"axes": [0], "starts": [3], "ends": [4], "decrease_axis": [0]})
