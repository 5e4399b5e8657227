"""Ops of program/ops/gru.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_gradient, checks

rng = np.random.default_rng(0)
FUNCTIONS = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "identity": lambda x: x}
NUMBERS = {0: "identity", 1: "sigmoid", 2: "tanh"}


def step(x, h, inputs, attrs):
    """(hidden, gates and candidate, what the reset gate lets through) of one row."""
    weight, size = inputs["Weight"].reshape(-1), len(inputs["Weight"])
    gate, function = (FUNCTIONS[NUMBERS.get(name, name)] for name in (
        attrs.get("gate_activation", "sigmoid"), attrs.get("activation", "tanh")))
    x = x + inputs["Bias"][0] if "Bias" in inputs else x
    of_gates, of_candidate = weight[:2 * size * size].reshape(size, -1), weight[2 * size * size:].reshape(size, size)
    update, reset = np.split(gate(x[:2 * size] + h @ of_gates), 2)
    candidate = function(x[2 * size:] + (reset * h) @ of_candidate)
    hidden = update * h + (1 - update) * candidate if attrs.get("origin_mode") \
        else (1 - update) * h + update * candidate
    return hidden, np.concatenate([update, reset, candidate]), reset * h


def by_rows(inputs, attrs):
    (x, (lengths,)), size = inputs["Input"], len(inputs["Weight"])
    out, begin = np.zeros((len(x), size)), 0
    for number, length in enumerate(lengths):
        h = inputs["H0"][number] if "H0" in inputs else np.zeros(size)
        rows = range(begin, begin + length)
        for row in reversed(rows) if attrs.get("is_reverse") else rows:
            out[row] = h = step(x[row], h, inputs, attrs)[0]
        begin += length
    return {"Hidden": out}


def case(lengths, size=2, first=False, bias=True, **attrs):
    inputs = {"Input": (rng.normal(size=(sum(lengths), 3 * size)), [lengths]),
              "Weight": rng.normal(size=(size, 3 * size))}
    if bias:
        inputs["Bias"] = rng.normal(size=(1, 3 * size))
    if first:
        inputs["H0"] = rng.normal(size=(len(lengths), size))
    return Case("gru", inputs, attrs, by_rows, grads=" ".join(inputs), by="Hidden", note=f"{lengths}{attrs}", near=1e-5,
                outputs={"Hidden": [0], "BatchGate": [0]}, lods={"Hidden": [lengths]})


CASES = [case([2, 3, 1]), case([1, 0, 2], first=True), case([3, 2], first=True, is_reverse=True),
         case([2, 2], origin_mode=True, first=True), case([1, 2], bias=False),
         case([2, 1], gate_activation="tanh", activation="identity")]


def unit(inputs, attrs):
    found = [step(x, h, inputs, {"gate_activation": 1, "activation": 2, **attrs})
             for x, h in zip(inputs["Input"], inputs["HiddenPrev"])]
    return dict(zip(("Hidden", "Gate", "ResetHiddenPrev"), (np.array(part) for part in zip(*found))))


def unit_case(rows, bias=True, size=2, **attrs):
    inputs = {"Input": rng.normal(size=(rows, 3 * size)), "HiddenPrev": rng.normal(size=(rows, size)),
              "Weight": rng.normal(size=(size, 3 * size))}
    if bias:
        inputs["Bias"] = rng.normal(size=(1, 3 * size))
    return Case("gru_unit", inputs, attrs, unit, grads=" ".join(inputs), by="Hidden", note=f"{rows}{attrs}", near=1e-5)


CASES += [unit_case(3), unit_case(1, origin_mode=True), unit_case(2, bias=False, activation=0, gate_activation=2)]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("grads", ["Weight", "Bias", "HiddenPrev"])
def test_one_gradient_alone_is_right_too(grads):
    alone = unit_case(2)
    alone.grads = [grads]
    check_gradient(alone)


def test_a_weight_of_the_wrong_shape_is_refused():
    wrong = case([2])
    wrong.inputs["Weight"], wrong.expect = np.ones((2, 4)), {}
    with pytest.raises(ProgramError, match=r"Weight \[D, 3 D\]"):
        Built(wrong)
