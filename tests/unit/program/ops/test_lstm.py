"""Ops of program/ops/lstm.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError, UsageError
from tests.unit.program.ops.checking import Built, Case, check_gradient, checks

rng = np.random.default_rng(0)
FUNCTIONS = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0),
             "identity": lambda x: x}


def by_rows(inputs, attrs):
    """Sequence by sequence and row by row."""
    (x, (lengths,)), weight, bias = inputs["Input"], inputs["Weight"], inputs["Bias"][0]
    size = len(weight)
    gate, squash, candidate = (FUNCTIONS[attrs.get(name, default)] for name, default in (
        ("gate_activation", "sigmoid"), ("cell_activation", "tanh"), ("candidate_activation", "tanh")))
    of_enter, of_forget, of_leave = np.split(bias[4 * size:], 3) if attrs.get("use_peepholes", True) else (0, 0, 0)
    hidden, cell, begin = np.zeros((len(x), size)), np.zeros((len(x), size)), 0
    for number, length in enumerate(lengths):
        h, c = (inputs[slot][number] if slot in inputs else np.zeros(size) for slot in ("H0", "C0"))
        rows = range(begin, begin + length)
        for row in reversed(rows) if attrs.get("is_reverse") else rows:
            new, enter, forget, leave = np.split(x[row] + h @ weight + bias[:4 * size], 4)
            old = c
            c = candidate(new) * gate(enter + old * of_enter) + old * gate(forget + old * of_forget)
            h = gate(leave + c * of_leave) * squash(c)
            hidden[row], cell[row] = h, c
        begin += length
    return {"Hidden": hidden, "Cell": cell}


def case(lengths, size=2, first=False, **attrs):
    inputs = {"Input": (rng.normal(size=(sum(lengths), 4 * size)), [lengths]),
              "Weight": rng.normal(size=(size, 4 * size)),
              "Bias": rng.normal(size=(1, (7 if attrs.get("use_peepholes", True) else 4) * size))}
    if first:
        inputs.update(H0=rng.normal(size=(len(lengths), size)), C0=rng.normal(size=(len(lengths), size)))
    return Case("lstm", inputs, attrs, by_rows, grads=" ".join(inputs), by="Hidden Cell", near=1e-5,
                note=f"{lengths}{attrs}", outputs={"Hidden": [0], "Cell": [0], "BatchGate": [0]},
                lods={"Hidden": [lengths], "Cell": [lengths]})


CASES = [case([2, 3, 1]), case([1, 0, 2], first=True), case([3, 2], first=True, is_reverse=True),
         case([2, 2], use_peepholes=False), case([1, 3], use_peepholes=False, is_reverse=True, first=True),
         case([2, 1], gate_activation="tanh", cell_activation="identity", candidate_activation="sigmoid")]


def unit(inputs, attrs):
    enter, forget, leave, new = np.split(inputs["X"], 4, axis=1)
    sigmoid = FUNCTIONS["sigmoid"]
    c = sigmoid(forget + attrs.get("forget_bias", 0)) * inputs["C_prev"] + sigmoid(enter) * np.tanh(new)
    return {"C": c, "H": sigmoid(leave) * np.tanh(c)}


CASES += [Case("lstm_unit", {"X": rng.normal(size=(rows, 8)), "C_prev": rng.normal(size=(rows, 2))},
               {"forget_bias": bias}, unit, grads="X C_prev", by=by, note=f"{rows}{bias}{by}")
          for rows, bias, by in ((3, 0.0, "C H"), (1, 1.0, "C H"), (2, 0.0, "H"), (2, 0.0, "C"))]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("by", ["Hidden", "Cell"])
def test_one_output_alone_may_have_a_gradient(by):
    alone = case([2, 1])
    alone.by = by
    check_gradient(alone)


def test_a_bias_without_peepholes_is_refused_where_they_are_used():
    wrong = case([2], use_peepholes=False)
    wrong.attrs["use_peepholes"] = True
    with pytest.raises(ProgramError, match=r"Bias \[1, 7 D\]"):
        Built(wrong)


def test_an_unknown_activation_names_the_nearest():
    wrong = case([2])
    wrong.attrs["gate_activation"], wrong.expect = "sigmoit", {}
    with pytest.raises(UsageError, match="gate_activation.*did you mean 'sigmoid'"):
        Built(wrong).run(["Hidden_out_0"])
