"""Ops of program/ops/likelihood_loss.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)


def likelihood(inputs, attrs):
    given, labels = inputs["X"], inputs["Label"]
    losses, weights = np.zeros(labels.shape), np.zeros(labels.shape)
    for place in np.ndindex(labels.shape):
        label = labels[place]
        if label != attrs["ignore_index"]:
            weights[place] = inputs["Weight"][label] if "Weight" in inputs else 1.0
            losses[place] = -given[(place[0], label) + place[1:]] * weights[place]
    total = weights.sum()
    out = {"none": losses, "sum": losses.sum().reshape(1), "mean": (losses.sum() / (total or 1)).reshape(1)}
    return {"Out": out[attrs["reduction"]], "Total_weight": total.reshape(1)}


def case(shape, reduction, weighed=False, ignored=-100, label=None):
    label = rng.integers(0, shape[1], (shape[0],) + shape[2:]) if label is None else np.array(label)
    inputs = {"X": rng.normal(size=shape), "Label": label}
    inputs |= {"Weight": rng.uniform(0.5, 2, shape[1])} if weighed else {}
    return Case("nll_loss", inputs, {"reduction": reduction, "ignore_index": ignored}, likelihood, grads="X",
                note=f"{shape}{reduction}{weighed}{ignored}")


CASES = [case(shape, reduction, weighed, ignored) for shape in ((4, 3), (2, 3, 2, 2))
         for reduction in ("mean", "sum", "none") for weighed, ignored in ((False, -100), (True, 1))]
CASES += [case((2, 3), "mean", ignored=-1, label=[-1, -1]), case((2, 3), "mean", True, -1, [-1, 2])]

test_forward, test_gradient, test_device = checks(CASES)


def test_a_label_outside_the_classes_is_refused_by_value():
    wrong = Case("nll_loss", {"X": np.zeros((2, 3)), "Label": np.array([0, 3])}, {},
                 {"Out": np.zeros(1), "Total_weight": np.zeros(1)})
    with pytest.raises(ProgramError, match="id 3 at position 1 is outside the classes"):
        Built(wrong).run(["Out_out_0"])


@pytest.mark.parametrize("label, attrs, words", [([-1, 1], {}, r"Label \[rows, ...\]"),
                                                 ([-1], {"reduction": "all"}, "'mean'")])
def test_what_does_not_fit_is_refused_while_building(label, attrs, words):
    value = static_data("value", [-1, 3])
    with pytest.raises(ProgramError, match=words):
        value.block.append_op("nll_loss", {"X": [value], "Label": [static_data("label", label, "int64")]},
                              {"Out": ["out"], "Total_weight": ["total"]}, attrs)
