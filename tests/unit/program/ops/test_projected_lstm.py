"""Ops of program/ops/projected_lstm.py, and the layer."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import create_lod_tensor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.projected_lstm import dynamic_lstmp
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)
FUNCTIONS = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "identity": lambda x: x}


def by_rows(inputs, attrs):
    """Sequence by sequence and row by row."""
    (x,
     (lengths,)), weight, projecting, bias = inputs["Input"], inputs["Weight"], inputs["ProjWeight"], inputs["Bias"][0]
    size, width = projecting.shape
    gate, project = FUNCTIONS["sigmoid"], FUNCTIONS[attrs.get("proj_activation", "tanh")]
    of_enter, of_forget, of_leave = np.split(bias[4 * size:], 3) if attrs.get("use_peepholes", True) else (0, 0, 0)
    bound = lambda values, limit: np.clip(values, -limit, limit) if limit else values
    projection, cell, begin = np.zeros((len(x), width)), np.zeros((len(x), size)), 0
    for number, length in enumerate(lengths):
        r = inputs["H0"][number] if "H0" in inputs else np.zeros(width)
        c = inputs["C0"][number] if "C0" in inputs else np.zeros(size)
        rows = range(begin, begin + length)
        for row in reversed(rows) if attrs.get("is_reverse") else rows:
            new, enter, forget, leave = np.split(x[row] + r @ weight + bias[:4 * size], 4)
            old = c
            c = bound(np.tanh(new) * gate(enter + old * of_enter) + old * gate(forget + old * of_forget),
                      attrs.get("cell_clip", 0))
            r = bound(project((gate(leave + c * of_leave) * np.tanh(c)) @ projecting), attrs.get("proj_clip", 0))
            projection[row], cell[row] = r, c
        begin += length
    return {"Projection": projection, "Cell": cell}


def case(lengths, first=False, size=3, width=2, **attrs):
    inputs = {"Input": (rng.normal(size=(sum(lengths), 4 * size)), [lengths]),
              "Weight": rng.normal(size=(width, 4 * size)), "ProjWeight": rng.normal(size=(size, width)),
              "Bias": rng.normal(size=(1, (7 if attrs.get("use_peepholes", True) else 4) * size))}
    if first:
        inputs.update(H0=rng.normal(size=(len(lengths), width)), C0=rng.normal(size=(len(lengths), size)))
    return Case("lstmp", inputs, attrs, by_rows, grads=" ".join(inputs), by="Projection Cell", near=1e-5,
                note=f"{lengths}{attrs}", lods={"Projection": [lengths], "Cell": [lengths]},
                outputs={"Projection": [0], "Cell": [0], "BatchGate": [0], "BatchHidden": [0]})


CASES = [case([2, 3, 1]), case([1, 0, 2], first=True), case([3, 2], first=True, is_reverse=True),
         case([2, 2], use_peepholes=False), case([2, 1], proj_activation="identity"),
         case([3, 1], cell_clip=0.4, proj_clip=0.2)]

test_forward, test_gradient, test_device = checks(CASES)


def test_shapes_that_do_not_fit_are_refused():
    wrong = case([2])
    wrong.inputs["Weight"] = np.zeros((3, 12))
    with pytest.raises(ProgramError, match=r"Weight \[P, 4 D\]"):
        Built(wrong)


def test_the_layer_makes_its_weights():
    projection, cell = dynamic_lstmp(data("x", [12], lod_level=1), 12, 2)
    assert [param.shape for param in default_main_program().all_parameters()] == [(2, 12), (3, 2), (1, 21)]
    executor = Executor()
    executor.run(default_startup_program())
    fed = create_lod_tensor(rng.normal(size=(5, 12)).astype("float32"), [[2, 3]], None)
    found, state = executor.run(feed={"x": fed}, fetch_list=[projection, cell])
    assert found.shape == (5, 2) and state.shape == (5, 3)
    with pytest.raises(UsageError, match="4 x"):
        dynamic_lstmp(projection, 10, 2)
    with pytest.raises(UsageError, match="bias_attr=False"):
        dynamic_lstmp(projection, 12, 2, bias_attr=False)
