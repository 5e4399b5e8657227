"""Ops of program/ops/metric.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def accuracies(inputs, attrs):
    hits = sum(label in row for row, label in zip(inputs["Indices"].tolist(), inputs["Label"].flat))
    rows = len(inputs["Indices"])
    return {"Accuracy": np.array([hits / rows], np.float32), "Correct": np.array([hits]), "Total": np.array([rows])}


def areas(inputs, attrs):
    """Step by step as the text of the state says: bins, trapezoids from above."""
    bins, steps = attrs["num_thresholds"] + 1, attrs["slide_steps"]
    states = [inputs["StatPos"].copy(), inputs["StatNeg"].copy()]
    lines = [state.reshape(-1) for state in states]
    place = int(lines[0][-1]) % steps if steps else 0
    if steps:
        for line in lines:
            line[steps * bins:(steps + 1) * bins] -= line[place * bins:(place + 1) * bins]
            line[place * bins:(place + 1) * bins] = 0
            line[-1] += 1
    for row, label in zip(inputs["Predict"], inputs["Label"].flat):
        line = lines[0] if label > 0 else lines[1]
        bin = int(np.float64(row[-1]) * (bins - 1))
        for part in {place, steps}:
            line[part * bins + bin] += 1
    positive, negative = (line[steps * bins:(steps + 1) * bins] for line in lines)
    area = up = along = 0.0
    for i in reversed(range(bins)):
        area += negative[i] * (up + up + positive[i]) / 2
        up, along = up + positive[i], along + negative[i]
    return {"AUC": np.array([area / (up * along) if up * along else area]), "StatPosOut": states[0],
            "StatNegOut": states[1]}


def auc_case(bins, steps, columns, calls=0, positive=0.5):
    size = (steps + 1) * bins + 1 if steps else bins
    shape = (size,) if steps else (1, size)
    inputs = {"StatPos": np.zeros(shape, np.int64), "StatNeg": np.zeros(shape, np.int64)}
    attrs = {"num_thresholds": bins - 1, "slide_steps": steps, "curve": "ROC"}
    for _ in range(calls + 1):
        inputs.update(Predict=rng.uniform(0, 1, (7, columns)), Label=(rng.uniform(size=(7, 1)) < positive).astype(int))
        before = dict(inputs)
        after = areas(inputs, attrs)
        inputs.update(StatPos=after["StatPosOut"], StatNeg=after["StatNegOut"])
    return Case("auc", before, attrs, areas, note=f"{bins} bins {steps} steps {columns} columns {calls} calls")


CASES = [
    Case("accuracy", {"Out": rng.uniform(size=(4, 1)), "Indices": np.array([[1], [0], [2], [2]]),
                      "Label": np.array([[1], [1], [2], [0]])}, {}, accuracies),
    Case("accuracy", {"Out": rng.uniform(size=(3, 2)), "Indices": np.array([[1, 0], [0, 2], [2, 1]]),
                      "Label": np.array([[0], [1], [1]])}, {}, accuracies, note="top 2"),
    Case("accuracy", {"Indices": np.zeros((5, 1), np.int64), "Label": np.array([0, 1, 0, 0, 1])}, {}, accuracies,
         note="flat labels"),
    auc_case(8, 0, 2), auc_case(8, 0, 1, 2), auc_case(4096, 0, 2, 1), auc_case(8, 1, 2, 3), auc_case(8, 3, 1, 2),
    auc_case(8, 3, 2, 8), auc_case(8, 0, 2, positive=0.0), auc_case(8, 2, 2, positive=1.0),
]



def overlaps(inputs, attrs):
    """Class by class: where both say it, and where only one does."""
    guess, label = inputs["Predictions"].ravel(), inputs["Labels"].ravel()
    both = [((guess == c) & (label == c)).sum() for c in range(attrs["num_classes"])]
    one = [((guess == c) ^ (label == c)).sum() for c in range(attrs["num_classes"])]
    correct = np.array(both) + sum(inputs.get("InCorrects", [0]))
    wrong = np.array(one) + sum(inputs.get("InWrongs", [0]))
    shares = [c / (c + w) for c, w in zip(correct, wrong) if c + w]
    return {"OutMeanIou": np.array([np.mean(shares) if shares else 0.0]), "OutWrong": wrong, "OutCorrect": correct}


MAPS = {"Predictions": rng.integers(0, 4, (2, 3, 5)), "Labels": rng.integers(0, 4, (2, 3, 5))}
CASES += [Case("mean_iou", MAPS, {"num_classes": 6}, overlaps),
          Case("mean_iou", {**MAPS, "InWrongs": [np.arange(4, dtype=np.int32)],
                            "InCorrects": [np.ones(4, np.int32), np.ones(4, np.int32)]}, {"num_classes": 4}, overlaps,
               note="on top of others")]

test_forward, test_device = checks(CASES)


def test_a_class_beyond_the_others_is_refused():
    with pytest.raises(ProgramError, match="outside the predicted classes of 3 rows"):
        Built(Case("mean_iou", {"Predictions": np.array([0, 3]), "Labels": np.array([0, 1])}, {"num_classes": 3},
                   {"OutMeanIou": np.zeros(1), "OutWrong": np.zeros(3), "OutCorrect": np.zeros(3)})).run(
            ["OutMeanIou_out_0"])


def test_a_prediction_outside_0_to_1_is_a_sentence():
    case = auc_case(8, 0, 2)
    case.inputs["Predict"][3, 1] = 1.5
    case.outputs = {"AUC": [0], "StatPosOut": [0], "StatNegOut": [0]}
    with pytest.raises(ProgramError, match=r"prediction 1.5 in row 3 lies outside \[0, 1\]"):
        Built(case).run(["AUC_out_0"])


def test_states_of_another_size_are_refused_when_the_program_is_built():
    case = auc_case(8, 2, 2)
    case.attrs["num_thresholds"] = 8
    case.outputs = {"AUC": [0], "StatPosOut": [0], "StatNegOut": [0]}
    with pytest.raises(ProgramError, match="28 numbers for 8 thresholds and 2 steps"):
        Built(case)
