"""Ops of program/ops/loss.py."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def probabilities(*shape):
    raw = rng.uniform(0.2, 1, shape)
    return raw / raw.sum(-1, keepdims=True)


def minus_log(p):
    return -math.log(p) if p > 0 else 1e20


def cross_entropies(inputs, attrs):
    x, label = inputs["X"], inputs["Label"]
    rows = x.reshape(-1, x.shape[-1])
    if attrs.get("soft_label"):
        loss = [sum(weight * minus_log(p) for weight, p in zip(weights, row))
                for weights, row in zip(label.reshape(rows.shape), rows)]
        match = loss
    else:
        kept = [int(one) if one != attrs.get("ignore_index", -100) else None for one in label.reshape(-1)]
        match = [1.0 if one is None else row[one] for one, row in zip(kept, rows)]
        loss = [minus_log(p) for p in match]
    shape = x.shape[:-1] + (1,)
    return {"Y": np.reshape(loss, shape), "MatchX": np.reshape(match, shape)}


def without_match(inputs, attrs):
    return {"Y": cross_entropies(inputs, attrs)["Y"]}


def log_losses(inputs, attrs):
    epsilon = attrs.get("epsilon", 1e-4)
    terms = [-y * math.log(p + epsilon) - (1 - y) * math.log(1 - p + epsilon)
             for p, y in zip(inputs["Predicted"].flat, inputs["Labels"].flat)]
    return {"Loss": np.reshape(terms, inputs["Predicted"].shape)}


def sigmoid_losses(inputs, attrs):
    ignored = attrs.get("ignore_index", -100)
    terms = [0.0 if y == ignored else max(x, 0) - x * y + math.log1p(math.exp(-abs(x)))
             for x, y in zip(inputs["X"].flat, inputs["Label"].flat)]
    made = np.reshape(terms, inputs["X"].shape)
    if attrs.get("normalize"):
        made = made / max((inputs["Label"] != ignored).sum(), 1e-5)
    return {"Out": made}


LABELS = np.array([[1], [3], [0]])
CASES = [
    Case("cross_entropy2", {"X": probabilities(3, 4), "Label": LABELS}, {}, cross_entropies, "X", "Y"),
    Case("cross_entropy2", {"X": probabilities(3, 4), "Label": LABELS}, {"ignore_index": 3}, cross_entropies,
         "X", "Y", note="ignored"),
    Case("cross_entropy2", {"X": probabilities(2, 3, 4), "Label": rng.integers(0, 4, (2, 3, 1))}, {},
         cross_entropies, "X", "Y", note="rank 3"),
    Case("cross_entropy2", {"X": np.array([[0.0, 1.0]]), "Label": np.array([[0]])}, {}, cross_entropies, note="zero"),
    Case("cross_entropy", {"X": probabilities(3, 4), "Label": LABELS}, {}, without_match, "X", "Y"),
    Case("cross_entropy", {"X": probabilities(3, 4), "Label": LABELS}, {"ignore_index": 1}, without_match, "X", "Y",
         note="ignored"),
    Case("cross_entropy", {"X": probabilities(3, 4), "Label": probabilities(3, 4)}, {"soft_label": True},
         without_match, "X", "Y", note="soft"),
    Case("cross_entropy", {"X": np.array([[0.0, 1.0]]), "Label": np.array([[0.0, 1.0]])}, {"soft_label": True},
         without_match, note="soft zero"),
    Case("log_loss", {"Predicted": rng.uniform(0.1, 0.9, (4, 1)), "Labels": np.array([[0.], [1.], [1.], [0.]])},
         {"epsilon": 1e-4}, log_losses, "Predicted", "Loss"),
    Case("log_loss", {"Predicted": rng.uniform(0.1, 0.9, (2, 3)), "Labels": rng.uniform(0, 1, (2, 3))},
         {"epsilon": 1e-2}, log_losses, "Predicted", "Loss", note="soft"),
] + [Case("sigmoid_cross_entropy_with_logits", {"X": rng.normal(0, 3, shape), "Label": label}, attrs,
          sigmoid_losses, "X", note=str(attrs))
     for shape, label, attrs in (
         ((3, 2), rng.uniform(0, 1, (3, 2)), {}),
         ((4,), np.array([1.0, -100.0, 0.0, 1.0]), {}),
         ((2, 2), np.array([[1.0, -1.0], [0.0, -1.0]]), {"ignore_index": -1, "normalize": True}),
         ((2,), np.array([-1.0, -1.0]), {"ignore_index": -1, "normalize": True}))]



def of_two(inputs, attrs):
    """Cross entropy with the click and, if the label says so, with the teacher's score."""
    found = []
    for x, label in zip(inputs["X"].ravel().tolist(), inputs["Label"].ravel().tolist()):
        clicked = label == -1 or label >= 1
        targets = [float(clicked)] + ([] if label < 0 else [label - clicked])
        share = 1 / (1 + math.exp(-x))
        found.append(sum(-z * math.log(share) - (1 - z) * math.log(1 - share) for z in targets))
    return {"Y": np.array(found).reshape(-1, 1)}


CASES.append(Case("teacher_student_sigmoid_loss", {
    "X": rng.normal(size=(6, 1)), "Label": np.array([[-2.0], [-1.0], [0.0], [0.25], [1.0], [1.625]])}, {}, of_two,
    grads="X", by="Y"))
test_forward, test_gradient, test_device = checks(CASES, widen=(True, False))


def test_a_student_beyond_the_bounds_gets_no_gradient():
    built = Built(Case("teacher_student_sigmoid_loss", {"X": np.array([[16.0], [-16.0], [3.0]]),
                                                        "Label": np.zeros((3, 1))}, {}, of_two, "X", "Y"),
                  with_grad=True)
    assert (built.run(built.gradients)[0] != 0).ravel().tolist() == [False, False, True]



def test_the_gradient_of_a_soft_label_of_zero_at_a_probability_of_zero_is_zero():
    case = Case("cross_entropy", {"X": np.array([[0.0, 1.0]]), "Label": np.array([[0.0, 1.0]])},
                {"soft_label": True}, without_match, "X", "Y")
    built = Built(case, with_grad=True)
    assert built.run(built.gradients)[0][0, 0] == 0


def test_a_label_that_names_no_class_is_a_sentence():
    case = Case("cross_entropy2", {"X": probabilities(2, 4), "Label": np.array([[1], [9]])}, {}, None,
                outputs={"Y": [0], "MatchX": [0]})
    with pytest.raises(ProgramError, match="label 9 at position 1"):
        Built(case).run(["Y_out_0"])


def test_operands_of_other_shapes_are_refused_when_the_program_is_built():
    case = Case("log_loss", {"Predicted": np.zeros((3, 1)), "Labels": np.zeros((3, 2))}, {}, None,
                outputs={"Loss": [0]})
    with pytest.raises(ProgramError, match="expected Labels as Predicted"):
        Built(case)
