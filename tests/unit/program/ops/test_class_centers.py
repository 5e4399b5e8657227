"""Ops of program/ops/class_centers.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)
LABELS = np.array([[1], [0], [1], [3]])


def pulled(inputs, attrs):
    centers, rate = inputs["Centers"].copy(), inputs["CenterUpdateRate"][0]
    diff = inputs["X"] - centers[inputs["Label"].ravel()]
    if attrs["need_update"]:
        for c in range(len(centers)):
            mine = diff[inputs["Label"].ravel() == c]
            centers[c] += rate * mine.sum(0) / (1 + len(mine))
    return {"SampleCenterDiff": diff, "Loss": (diff ** 2).sum(1, keepdims=True) / 2, "CentersOut": centers}


def case(need_update, labels=LABELS):
    return Case("center_loss", {"X": rng.normal(size=(4, 3)), "Label": labels, "Centers": rng.normal(size=(5, 3)),
                                "CenterUpdateRate": np.array([0.3])}, {"cluster_num": 5, "need_update": need_update},
                pulled, grads="X", by="Loss", note=f"moves {need_update}")


CASES = [case(True), case(False)]
test_forward, test_gradient, test_device = checks(CASES)


def test_a_label_that_is_no_class_is_refused():
    one = case(True, np.array([[1], [5], [0], [0]]))
    one.outputs = dict.fromkeys(("SampleCenterDiff", "Loss", "CentersOut"), [None])
    with pytest.raises(ProgramError, match="id 5 at position 1 is outside the classes of 5"):
        Built(one).run(["Loss_out_0"])
