"""Ops of program/ops/sorting.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def distinct(*shape):
    return rng.permutation(int(np.prod(shape))).reshape(shape) * 0.5 - 3.0


def along(axis, function):
    """Apply a function of a list to every line along an axis."""
    def expect(inputs, attrs):
        lines = np.moveaxis(inputs["X"], axis, -1)
        results = {}
        for index in np.ndindex(lines.shape[:-1]):
            for slot, found in function(list(lines[index])).items():
                results.setdefault(slot, {})[index] = found
        return {slot: np.moveaxis(np.array([by_index[i] for i in np.ndindex(lines.shape[:-1])]).reshape(
            lines.shape[:-1] + (-1,)), -1, axis) for slot, by_index in results.items()}
    return expect


def ordered(count=None, descending=False):
    def function(line):
        order = sorted(range(len(line)), key=lambda i: (-line[i] if descending else line[i], i))[:count]
        return {"Out": [line[i] for i in order], "Indices": order}
    return function


CASES = []
for shape, axis in [((3, 4), -1), ((3, 4), 0), ((2, 3, 4), 1), ((5,), 0)]:
    for descending in (False, True):
        CASES.append(Case("argsort", {"X": distinct(*shape)}, {"axis": axis, "descending": descending},
                          along(axis, ordered(None, descending)), grads="X", note=f"{shape}{axis}{descending}"))
    for count in (1, 2):
        for largest in (True, False):
            CASES.append(Case("top_k_v2", {"X": distinct(*shape)}, {"k": count, "axis": axis, "largest": largest},
                              along(axis, ordered(count, largest)), grads="X", note=f"{shape}{axis}{count}{largest}"))
for shape, count in [((3, 4), 1), ((3, 4), 3), ((2, 2, 5), 2), ((4,), 4)]:
    CASES.append(Case("top_k", {"X": distinct(*shape)}, {"k": count}, along(-1, ordered(count, True)), grads="X",
                      note=f"{shape}{count}"))
ties = np.array([[1.0, 3.0, 3.0, 0.0, 3.0]])
CASES += [
    Case("top_k", {"X": ties}, {"k": 2}, {"Out": np.array([[3.0, 3.0]]), "Indices": np.array([[1, 2]])}, note="ties"),
    Case("argsort", {"X": ties}, {"descending": True},
         {"Out": np.array([[3.0, 3, 3, 1, 0]]), "Indices": np.array([[1, 2, 4, 0, 3]])}, note="ties"),
    Case("top_k", {"X": distinct(3, 4), "K": np.array([2], "int32")}, {}, along(-1, ordered(2, True)), note="by K"),
]
for name, choose in (("arg_max", max), ("arg_min", min)):
    for shape, axis in [((3, 4), -1), ((3, 4), 0), ((2, 3, 4), 1), ((5,), 0)]:
        for keep in (False, True):
            value = distinct(*shape)
            moved = np.moveaxis(value, axis, -1)
            found = np.array([list(moved[i]).index(choose(moved[i])) for i in np.ndindex(moved.shape[:-1])])
            left = [n for i, n in enumerate(shape) if i != axis % len(shape)]
            if keep:
                left.insert(axis % len(shape), 1)
            CASES.append(Case(name, {"X": value}, {"axis": axis, "keepdims": keep},
                              {"Out": found.reshape(left or [1])}, note=f"{shape}{axis}{keep}"))
CASES += [
    Case("arg_max", {"X": np.array([[1.0, 5.0], [7.0, 2.0]])}, {"flatten": True}, {"Out": np.array([2])}),
    Case("arg_min", {"X": np.array([[1.0, 5.0], [7.0, 2.0]])}, {"axis": 1, "dtype": "int32"},
         {"Out": np.array([0, 1])}),
]

for shape, axis in [((5,), 0), ((4,), 0), ((3, 4), 1), ((4, 3), 0), ((2, 3, 2), -2), ((1, 2), 0)]:
    for keep in (False, True):
        value = distinct(*shape)
        CASES.append(Case("median", {"X": value}, {"axis": axis, "keepdim": keep},
                          lambda inputs, attrs: {"Out": np.atleast_1d(np.median(inputs["X"], attrs["axis"],
                                                                                keepdims=attrs["keepdim"]))},
                          grads="X", outputs={"Out": [0], "Indices": [0]}, note=f"{shape}{axis}{keep}"))

test_forward, test_gradient, test_device = checks(CASES)


def test_more_elements_than_there_are_cannot_be_chosen():
    value = static_data("value", [-1, 3])
    with pytest.raises(ProgramError, match="k = 4"):
        value.block.append_op("top_k", {"X": [value]}, {"Out": ["out"], "Indices": ["indices"]}, {"k": 4})
