"""Ops of program/ops/ctc.py, against all ways to emit the labels counted one by one."""

import itertools

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)
CLASSES = 3


def collapsed(way, blank):
    return [c for i, c in enumerate(way) if c != blank and (i == 0 or way[i - 1] != c)]


def cost(logits, labels, blank):
    """Minus the log of the sum over all ways; 0 where there is none."""
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    ways = [way for way in itertools.product(range(CLASSES), repeat=len(logits))
            if collapsed(way, blank) == list(labels)]
    chances = [np.prod([row[c] for row, c in zip(shares, way)]) for way in ways]
    return -np.log(sum(chances)) if chances and len(logits) else 0.0


def pieces(value):
    return np.split(value[0], np.cumsum(value[1][-1])[:-1])


def costs(inputs, attrs):
    if "LogitsLength" in inputs:
        pairs = [(inputs["Logits"][:n, i], inputs["Label"][i, :m]) for i, (n, m) in enumerate(
            zip(inputs["LogitsLength"], inputs["LabelLength"]))]
    else:
        pairs = zip(pieces(inputs["Logits"]), (one.reshape(-1) for one in pieces(inputs["Label"])))
    return {"Loss": np.array([[cost(x, labels, attrs.get("blank", 0))] for x, labels in pairs])}


def by_lod(lengths, labels):
    return {"Logits": (rng.normal(size=(sum(lengths), CLASSES)), [lengths]),
            "Label": (np.array(sum(labels, [])).reshape(-1, 1), [[len(one) for one in labels]])}


PADDED = {"Logits": rng.normal(size=(5, 3, CLASSES)), "Label": np.array([[1, 2], [2, 99], [99, 99]]),
          "LogitsLength": np.array([5, 3, 2]), "LabelLength": np.array([2, 1, 0])}


def case(inputs, note, grads="Logits", **attrs):
    return Case("warpctc", inputs, attrs, costs, grads, "Loss", note, near=1e-5,
                outputs={"WarpCTCGrad": [None], "Loss": [None]})


CASES = [case(by_lod([4, 5, 1], [[1, 2], [2, 2], [1]]), "lod"), case(by_lod([3, 2], [[], [1]]), "no labels"),
         case(by_lod([2, 4], [[1, 1], [2]]), "too short"), case(by_lod([4], [[0, 1]]), "blank last", blank=2),
         case(PADDED, "padded"),
         Case("ctc_align", {"Input": (np.array([[0], [1], [1], [0], [1], [2], [2], [2], [0]]), [[5, 4]])}, {},
              {"Output": np.array([[1], [1], [2]])}, lods={"Output": [[2, 1]]}),
         Case("ctc_align", {"Input": (np.array([[2], [2], [2], [0]]), [[1, 3]])}, {"merge_repeated": False, "blank": 0},
              {"Output": np.array([[2], [2], [2]])}, lods={"Output": [[1, 2]]}, note="keeps repeated"),
         Case("ctc_align", {"Input": (np.array([[1], [1], [1]]), [[2, 1]])}, {"blank": 1}, {"Output": np.array([[-1]])},
              note="nothing left"),
         Case("ctc_align", {"Input": np.array([[0, 1, 1, 2], [2, 0, 2, 2], [1, 1, 1, 1]]),
                            "InputLength": np.array([[4], [3], [0]])}, {"padding_value": 9},
              {"Output": np.array([[1, 2, 9, 9], [2, 2, 9, 9], [9, 9, 9, 9]]),
               "OutputLength": np.array([[2], [2], [0]])},
              note="padded")]
test_forward, test_gradient, test_device = checks(CASES)


def gradient(**attrs):
    built = Built(case(by_lod_of_four(), "", **attrs), with_grad=True)
    return built.run(built.gradients)[0]


def by_lod_of_four():
    return {"Logits": (np.arange(12.0).reshape(4, 3) % 5, [[4]]), "Label": (np.array([[1], [2]]), [[2]])}


def test_by_time_the_gradient_is_divided_by_the_number_of_rows():
    np.testing.assert_allclose(gradient(norm_by_times=True), gradient() / 4, rtol=1e-9)


def test_large_logits_neither_overflow_nor_vanish():
    given = by_lod([60], [[1, 2] * 10])
    logits = given["Logits"][0]
    logits *= 0
    logits[np.arange(60), ([0, 1] + [2, 1] * 29)[:60]] = 500.0
    one = case(given, "steep")
    one.outputs, one.expect = {"WarpCTCGrad": [None], "Loss": [None]}, None
    found, = Built(one).run(["Loss_out_0"])
    assert 1e3 < found[0, 0] < 1e6, "the certain way is another one"


@pytest.mark.parametrize("change, text", [
    ({"Label": (np.array([[1], [3]]), [[1, 1]])}, "id 3 at position 1 is outside the classes of 3"),
    ({"Label": (np.array([[1], [2]]), [[2]])}, "labels for each of 2 sequences of Logits, got 1"),
    ({"LogitsLength": np.array([2, 2])}, "with LogitsLength and LabelLength, got")])
def test_what_does_not_fit_is_refused(change, text):
    one = case({**by_lod([3, 2], [[1], [2]]), **change}, "bad")
    with pytest.raises(ProgramError, match=text):
        Built(one).run(["Loss_out_0"])


def test_a_length_beyond_the_rows_is_refused():
    with pytest.raises(ProgramError, match="goes beyond the 5 rows"):
        Built(case({**PADDED, "LogitsLength": np.array([5, 6, 2])}, "bad")).run(["Loss_out_0"])
