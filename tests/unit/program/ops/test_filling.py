"""Ops of program/ops/filling.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine import plan
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Case, check_gradient, checks

rng = np.random.default_rng(0)
rows = (np.zeros((5, 2)), [[2, 1, 2]])


def one(value, dtype="int64"):
    return np.array([value], dtype)


CASES = [
    Case("fill_constant", {}, {"shape": [2, 3], "value": 1.5}, {"Out": np.full((2, 3), 1.5)}),
    Case("fill_constant", {}, {"shape": [1], "value": 2 ** 53 + 1, "dtype": "int64"}, {"Out": one(2 ** 53 + 1)}),
    Case("fill_constant", {}, {"shape": [1], "value": "7", "dtype": "int32"}, {"Out": one(7)}),
    Case("fill_constant", {}, {"shape": [2], "value": 1.0, "dtype": "bool"}, {"Out": np.array([True, True])}),
    Case("fill_constant", {"ShapeTensor": np.array([2, 3], "int32")}, {"value": 2.0}, {"Out": np.full((2, 3), 2.0)}),
    Case("fill_constant", {"ShapeTensorList": [one(2), one(3)]}, {"shape": [-1, -1]}, {"Out": np.zeros((2, 3))}),
    Case("fill_constant", {"ValueTensor": one(7)}, {"shape": [2], "dtype": "float32"}, {"Out": np.full(2, 7.0)},
         note="by a variable"),
    Case("fill_constant_batch_size_like", {"Input": np.zeros((4, 2))}, {"shape": [-1, 3], "value": 1.0},
         {"Out": np.ones((4, 3))}),
    Case("fill_constant_batch_size_like", {"Input": np.zeros((4, 2))},
         {"shape": [3, 9], "value": 1, "input_dim_idx": 1, "output_dim_idx": 1, "dtype": "int64"},
         {"Out": np.ones((3, 2))}),
    Case("fill_constant_batch_size_like", {"Input": rows}, {"shape": [-1, 1], "value": 1.0},
         {"Out": np.ones((3, 1))}, note="sequences"),
    Case("fill_any_like", {"X": np.zeros((2, 3))}, {"value": 2.5}, {"Out": np.full((2, 3), 2.5)}),
    Case("fill_any_like", {"X": np.zeros((2, 3))}, {"value": 2.0, "dtype": "int32"}, {"Out": np.full((2, 3), 2)}),
    Case("fill_zeros_like", {"X": np.ones((2, 3))}, {}, {"Out": np.zeros((2, 3))}),
    Case("assign_value", {}, {"shape": [2, 2], "dtype": "float32", "values": [1.0, 2.0, 3.0, 4.0]},
         {"Out": np.array([[1, 2], [3, 4]])}),
    Case("assign_value", {}, {"shape": [3], "dtype": "int64", "values": np.array([3, 1, 2])},
         {"Out": np.array([3, 1, 2])}),
    Case("shape", {"Input": np.zeros((2, 3, 4))}, {}, {"Out": np.array([2, 3, 4])}),
    Case("size", {"Input": np.zeros((2, 3, 4))}, {}, {"Out": np.array([24])}),
    Case("range", {"Start": one(1), "End": one(8), "Step": one(3)}, {}, {"Out": np.array([1, 4, 7])}),
    Case("range", {"Start": one(5), "End": one(0), "Step": one(-2)}, {}, {"Out": np.array([5, 3, 1])}),
    Case("range", {"Start": one(0, "float32"), "End": one(1, "float32"), "Step": one(0.25, "float32")}, {},
         {"Out": np.array([0, 0.25, 0.5, 0.75])}),
    Case("linspace", {"Start": one(0, "float32"), "Stop": one(1, "float32"), "Num": one(5, "int32")},
         {"dtype": "float32"}, {"Out": np.array([0, 0.25, 0.5, 0.75, 1])}),
    Case("eye", {}, {"num_rows": 2, "num_columns": 3}, {"Out": np.array([[1, 0, 0], [0, 1, 0]])}),
    Case("eye", {}, {"num_rows": 2, "dtype": "int64"}, {"Out": np.array([[1, 0], [0, 1]])}),
    Case("diag", {"Diagonal": np.array([1.0, 2.0, 3.0])}, {}, {"Out": np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]])}),
]

test_forward, test_device = checks(CASES)


def test_no_gradient_op_exists_for_constants():
    for case in CASES:
        with pytest.raises(ProgramError):
            check_gradient(Case(case.type + "_grad", case.inputs, case.attrs, case.expect))


def with_shape_of_rows(value):
    """A program that fills [rows of x, 2] from the shape of x."""
    program = Program()
    with program_guard(program, Program()):
        block = static_data("x", [-1, 3]).block
        block.append_op("shape", {"Input": ["x"]}, {"Out": ["sizes"]})
        block.append_op("slice", {"Input": ["sizes"]}, {"Out": ["rows"]}, {"axes": [0], "starts": [0], "ends": [1]})
        block.append_op("fill_constant", outputs={"Out": ["two"]}, attrs={"shape": [1], "value": 2, "dtype": "int32"})
        block.append_op("fill_constant", {"ShapeTensorList": ["rows", "two"]}, {"Out": ["out"]},
                        {"shape": [-1, 2], "value": value})
    return program


def test_what_follows_from_shapes_alone_is_planned_not_interpreted(monkeypatch):
    monkeypatch.setattr(plan, "InterpretedPlan", None)
    program, executor = with_shape_of_rows(1.0), Executor()
    for rows in (4, 2, 4):
        out, = executor.run(program, {"x": np.zeros((rows, 3), "float32")}, ["out"])
        assert out.shape == (rows, 2) and (out == 1).all()


def test_a_shape_that_depends_on_fed_values_is_interpreted():
    program = Program()
    with program_guard(program, Program()):
        block = static_data("n", [1], "int64").block
        block.append_op("fill_constant", {"ShapeTensorList": ["n"]}, {"Out": ["out"]}, {"shape": [-1], "value": 3.0})
    executor = Executor()
    for size in (2, 5):
        out, = executor.run(program, {"n": np.array([size])}, ["out"])
        assert (out == np.full(size, 3.0)).all()


def test_too_few_values_are_refused():
    with pytest.raises(ProgramError, match="expected 4 values"):
        static_data("x", [1]).block.append_op("assign_value", outputs={"Out": ["out"]},
                                              attrs={"shape": [2, 2], "values": [1.0]})
