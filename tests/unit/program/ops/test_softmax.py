"""Ops of program/ops/softmax.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def soft_max(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def with_logarithm(function):
    return lambda inputs, attrs: {"Out": function(soft_max(inputs["X"], attrs.get("axis", -1)))}


def cross_entropies(inputs, attrs):
    """Row by row, as the definition says."""
    axis = attrs.get("axis", -1)
    logits, label = inputs["Logits"], inputs["Label"]
    share = soft_max(logits, axis)
    logs = np.moveaxis(np.log(share), axis, -1)
    if attrs.get("soft_label"):
        loss = -(logs * np.moveaxis(label, axis, -1)).sum(-1)
    else:
        wanted = label.reshape(logs.shape[:-1])
        loss = np.zeros(logs.shape[:-1])
        for place in np.ndindex(*loss.shape):
            if wanted[place] != attrs.get("ignore_index", -100):
                loss[place] = -logs[place][wanted[place]]
    return {"Softmax": share, "Loss": np.expand_dims(loss, axis)}


def logits(*shape):
    return rng.normal(0, 2, shape)


def targets(*shape, axis=-1):
    return soft_max(rng.normal(size=shape), axis)


CASES = [Case(type, {"X": logits(*shape)}, {"axis": axis}, with_logarithm(function), grads="X", note=f"{shape}{axis}")
         for type, function in (("softmax", lambda p: p), ("log_softmax", np.log))
         for shape, axis in (((2, 3), -1), ((3,), 0), ((2, 3, 2), 1), ((2, 2, 3), 2), ((4, 2), 0))]
WITH = "softmax_with_cross_entropy"
CASES += [
    Case(WITH, {"Logits": logits(3, 4), "Label": np.array([[1], [3], [0]])}, {}, cross_entropies, "Logits", "Loss"),
    Case(WITH, {"Logits": logits(3, 4), "Label": np.array([1, 3, 0])}, {}, cross_entropies, "Logits", "Loss",
         note="flat label"),
    Case(WITH, {"Logits": logits(3, 4), "Label": np.array([[1], [-1], [0]])}, {"ignore_index": -1},
         cross_entropies, "Logits", "Loss", note="ignored"),
    Case(WITH, {"Logits": logits(3, 4), "Label": np.array([[1], [2], [0]])}, {"ignore_index": 2},
         cross_entropies, "Logits", "Loss", note="ignored class"),
    Case(WITH, {"Logits": logits(2, 3, 2), "Label": rng.integers(0, 3, (2, 1, 2))}, {"axis": 1},
         cross_entropies, "Logits", "Loss", note="axis 1"),
    Case(WITH, {"Logits": logits(2, 2, 3), "Label": rng.integers(0, 3, (2, 2, 1), dtype=np.int32)}, {"axis": 2},
         cross_entropies, "Logits", "Loss", note="int32"),
    Case(WITH, {"Logits": logits(3, 4), "Label": targets(3, 4)}, {"soft_label": True}, cross_entropies,
         "Logits", "Loss", note="soft"),
    Case(WITH, {"Logits": logits(2, 4, 2), "Label": targets(2, 4, 2, axis=1)}, {"soft_label": True, "axis": 1},
         cross_entropies, "Logits", "Loss", note="soft axis 1"),
    Case(WITH, {"Logits": logits(3, 4), "Label": np.array([[1], [3], [0]])}, {}, cross_entropies,
         "Logits", "Loss Softmax", note="both outputs used"),
    Case(WITH, {"Logits": logits(3, 4), "Label": np.array([[1], [3], [0]])}, {}, cross_entropies,
         "Logits", "Softmax", note="softmax used"),
]

test_forward, test_gradient, test_device = checks(CASES, widen=(True, False))


def test_a_label_that_names_no_class_is_a_sentence_with_the_label_and_the_range():
    case = Case(WITH, {"Logits": logits(3, 4), "Label": np.array([[1], [4], [0]])}, {}, None,
                outputs={"Softmax": [0], "Loss": [0]})
    with pytest.raises(ProgramError, match=r"label 4 at position 1 names no class: expected 0 \.\. 3"):
        Built(case).run(["Loss_out_0"])


@pytest.mark.parametrize("label, attrs, words", [
    (np.zeros((3, 4), int), {}, "soft_label=True"),
    (np.zeros((3, 1)), {}, "integers"),
    (np.zeros((3, 1)), {"soft_label": True}, r"shape \[3, 4\]"),
    (np.zeros((3, 1), int), {"axis": 2}, "axis 2"),
])
def test_labels_that_do_not_fit_are_refused_when_the_program_is_built(label, attrs, words):
    with pytest.raises(ProgramError, match=words):
        Built(Case(WITH, {"Logits": logits(3, 4), "Label": label}, attrs, None,
                   outputs={"Softmax": [0], "Loss": [0]}))


def test_soft_labels_get_no_gradient_even_when_they_are_computed():
    case = Case(WITH, {"Logits": logits(3, 4), "Label": targets(3, 4)}, {"soft_label": True}, cross_entropies,
                "Label", "Loss")
    with pytest.raises(AssertionError, match="no gradient reaches"):
        Built(case, with_grad=True)
