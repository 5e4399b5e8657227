"""Ops of program/ops/manipulation.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.data import data
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)


def reshaped(x, *shape):
    flat = iter(np.asarray(x).ravel())
    out = np.empty(shape)
    for index in np.ndindex(shape):
        out[index] = next(flat)
    return out


def x(*shape):
    return rng.normal(size=shape)


CASES = []
for given, wanted, result in [((2, 6), [3, 4], (3, 4)), ((2, 3, 4), [0, -1], (2, 12)), ((4, 3), [-1], (12,)),
                              ((2, 3, 4), [0, 0, 2, 2], (2, 3, 2, 2)), ((6,), [2, 3, 1], (2, 3, 1))]:
    for type in ("reshape", "reshape2"):
        value = x(*given)
        CASES.append(Case(type, {"X": value}, {"shape": wanted}, {"Out": reshaped(value, *result)}, grads="X",
                          note=f"{given}{wanted}"))
value = x(2, 6)
CASES += [
    Case("reshape2", {"X": value, "Shape": np.array([4, -1], "int32")}, {}, {"Out": reshaped(value, 4, 3)},
         note="by a variable"),
    Case("reshape2", {"X": value, "ShapeTensor": [np.array([3], "int32"), np.array([4], "int32")]},
         {"shape": [-1, -1]}, {"Out": reshaped(value, 3, 4)}, note="by a list of variables"),
]
for given, axes, result in [((2, 1, 3, 1), [], (2, 3)), ((2, 1, 3, 1), [1], (2, 3, 1)), ((1, 2, 1), [-1], (1, 2)),
                            ((1, 2), [0, 1], (2,))]:
    for type in ("squeeze", "squeeze2"):
        value = x(*given)
        CASES.append(Case(type, {"X": value}, {"axes": axes}, {"Out": reshaped(value, *result)}, grads="X",
                          note=f"{given}{axes}"))
for given, axes, result in [((2, 3), [0], (1, 2, 3)), ((2, 3), [-1], (2, 3, 1)), ((2, 3), [1, 2], (2, 1, 1, 3)),
                            ((3,), [0, 2], (1, 3, 1))]:
    for type in ("unsqueeze", "unsqueeze2"):
        value = x(*given)
        CASES.append(Case(type, {"X": value}, {"axes": axes}, {"Out": reshaped(value, *result)}, grads="X",
                          note=f"{given}{axes}"))
for given, axis, result in [((2, 3, 4), 1, (2, 12)), ((2, 3, 4), 2, (6, 4)), ((2, 3), 0, (1, 6))]:
    for type in ("flatten", "flatten2"):
        value = x(*given)
        CASES.append(Case(type, {"X": value}, {"axis": axis}, {"Out": reshaped(value, *result)}, grads="X",
                          note=f"{given}{axis}"))
for given, start, stop, result in [((2, 3, 4), 1, -1, (2, 12)), ((2, 3, 4, 2), 1, 2, (2, 12, 2)), ((2, 3), 0, 1, (6,))]:
    value = x(*given)
    CASES.append(Case("flatten_contiguous_range", {"X": value}, {"start_axis": start, "stop_axis": stop},
                      {"Out": reshaped(value, *result)}, grads="X", note=f"{given}{start}{stop}"))


def turned(inputs, attrs):
    value, order = inputs["X"], attrs["axis"]
    out = np.empty([value.shape[i] for i in order])
    for index in np.ndindex(value.shape):
        out[tuple(index[i] for i in order)] = value[index]
    return {"Out": out}


def reversed_along(inputs, attrs):
    value, axes = inputs["X"], attrs["axis"]
    out = np.empty_like(value)
    for index in np.ndindex(value.shape):
        out[tuple(n - 1 - i if a in axes or a - value.ndim in axes else i
                  for a, (i, n) in enumerate(zip(index, value.shape)))] = value[index]
    return {"Out": out}


for given, order in [((2, 3), [1, 0]), ((2, 3, 4), [0, 2, 1]), ((2, 3, 4, 2), [3, 0, 1, 2]), ((2, 3), [0, -1])]:
    CASES += [Case(type, {"X": x(*given)}, {"axis": order}, turned, grads="X", note=f"{given}{order}")
              for type in ("transpose", "transpose2")]
for given, axes in [((2, 3), [0]), ((2, 3, 2), [-1, 0]), ((4,), [0])]:
    CASES += [Case(type, {"X": x(*given)}, {"axis": axes}, reversed_along, grads="X", note=f"{given}{axes}")
              for type in ("reverse", "flip")]
for slots in ({"AxesTensor": np.array([0, 2], "int32")}, {"AxesTensorList": [np.array([0]), np.array([2])]}):
    value = x(2, 3)
    CASES.append(Case("unsqueeze2", {"X": value, **slots}, {"axes": [-1, -1] if len(slots) > 1 else []},
                      {"Out": value[None, :, None]}, grads="X", note=f"by {' '.join(slots)}"))
for given, shifts, axes in [((2, 3), [1], [0]), ((2, 3), [-4, 5], [1, 0]), ((4,), [0], [-1]), ((2, 3), [2], []),
                            ((3, 2, 2), [1, 1], [0, 0])]:
    value = x(*given)
    CASES.append(Case("roll", {"X": value}, {"shifts": shifts, "axis": axes},
                      {"Out": np.roll(value, shifts if axes else shifts[0], tuple(axes) if axes else None)},
                      grads="X", note=f"{given}{shifts}{axes}"))

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("shape", [[5, 2], [-1, -1], [7, -1], [0, 0, 0]])
def test_a_shape_that_does_not_fit_is_an_error_with_both_shapes(shape):
    value = data("value", [2, 6], append_batch_size=False)
    with pytest.raises(ProgramError, match=r"\[2, 6\]|at most one -1"):
        value.block.append_op("reshape2", {"X": [value]}, {"Out": ["out"]}, {"shape": shape})


def test_a_reshape_behind_an_unknown_batch_size_knows_its_columns():
    program = Program()
    with program_guard(program, Program()):
        value = data("value", [4, 5])
        value.block.append_op("reshape2", {"X": [value]}, {"Out": ["out"], "XShape": ["xshape"]}, {"shape": [0, -1]})
    assert program.global_block().var("out").shape == (-1, 20)
    assert program.global_block().var("xshape").shape == (0, -1, 4, 5)


def test_a_view_does_not_change_when_its_source_is_used_again():
    program = Program()
    with program_guard(program, Program()):
        value = data("value", [4])
        block = value.block
        block.append_op("reshape2", {"X": [value]}, {"Out": ["flat"]}, {"shape": [-1]})
        block.append_op("elementwise_add", {"X": [value], "Y": [value]}, {"Out": ["twice"]})
        block.append_op("elementwise_add", {"X": ["flat"], "Y": ["flat"]}, {"Out": ["also"]})
    given = np.arange(8, dtype="float32").reshape(2, 4)
    flat, twice, also = Executor().run(program, {"value": given}, ["flat", "twice", "also"])
    assert (flat == given.ravel()).all() and (twice == 2 * given).all() and (also == 2 * given.ravel()).all()
