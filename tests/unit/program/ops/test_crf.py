"""Ops of program/ops/crf.py, against all sequences of tags counted one by one."""

import itertools

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, checks

rng = np.random.default_rng(0)
TAGS = 3


def sequences(inputs):
    """(emissions, labels or None) of each sequence."""
    emission, labels = inputs["Emission"], inputs.get("Label")
    if "Length" in inputs:
        return [(emission[i, :n], None if labels is None else labels[i, :n].reshape(-1))
                for i, n in enumerate(inputs["Length"].reshape(-1))]
    ends = np.cumsum(emission[1][-1])
    given = None if labels is None else labels[0].reshape(-1)
    return [(emission[0][end - n:end], None if given is None else given[end - n:end])
            for n, end in zip(emission[1][-1], ends)]


def weight(emission, transition, tags):
    total = transition[0, tags[0]] + transition[1, tags[-1]] + sum(row[t] for row, t in zip(emission, tags))
    return total + sum(transition[a + 2, b] for a, b in zip(tags, tags[1:]))


def every(emission):
    return itertools.product(range(TAGS), repeat=len(emission))


def costs(inputs, attrs):
    found, transition = [], inputs["Transition"]
    for emission, labels in sequences(inputs):
        whole = [weight(emission, transition, tags) for tags in every(emission)] if len(emission) else [0.0]
        found.append(np.log(np.sum(np.exp(whole))) - (weight(emission, transition, labels) if len(emission) else 0.0))
    return {"LogLikelihood": np.reshape(found, (-1, 1)), **kept(inputs)}


def kept(inputs):
    """Shapes of the outputs that only the gradient reads."""
    emission = inputs["Emission"][0] if isinstance(inputs["Emission"], tuple) else inputs["Emission"]
    return {"Alpha": np.empty(emission.shape), "EmissionExps": np.empty(emission.shape),
            "TransitionExps": np.empty((TAGS + 2, TAGS))}


def paths(inputs, attrs):
    emission = inputs["Emission"]
    out = np.zeros(emission.shape[:2] if "Length" in inputs else (len(emission[0]), 1), np.int64)
    best = [list(max(every(x), key=lambda tags: weight(x, inputs["Transition"], tags))) if len(x) else []
            for x, _ in sequences(inputs)]
    if "Length" in inputs:
        for row, tags in zip(out, best):
            row[:len(tags)] = tags
    else:
        out[:, 0] = sum(best, [])
    if "Label" in inputs:
        labels = inputs["Label"] if "Length" in inputs else inputs["Label"][0]
        out = (out == labels.reshape(out.shape)).astype(np.int64)
    return {"ViterbiPath": out}


def by_lod(lengths, scale=1.0):
    rows = sum(lengths)
    return {"Emission": (rng.normal(size=(rows, TAGS)) * scale, [lengths]),
            "Transition": rng.normal(size=(TAGS + 2, TAGS)) * scale,
            "Label": (rng.integers(0, TAGS, (rows, 1)), [lengths])}


def padded():
    labels = rng.integers(0, TAGS, (3, 4, 1))
    labels[1, 2:] = 99  # behind the end nobody looks
    return {"Emission": rng.normal(size=(3, 4, TAGS)), "Transition": rng.normal(size=(TAGS + 2, TAGS)),
            "Label": labels, "Length": np.array([[4], [2], [0]])}


class Kept(Case):
    """A Case of the cost that looks at LogLikelihood only: the other outputs are the gradient's business."""

    def expected(self):
        """Only what users see."""
        return {"LogLikelihood": super().expected()["LogLikelihood"]}


def cost(inputs, note):
    shapes = {slot: [value] for slot, value in kept(inputs).items()}
    return Kept("linear_chain_crf", inputs, {}, costs, "Emission Transition", "LogLikelihood", note,
                outputs={**shapes, "LogLikelihood": [None]})


CASES = [cost(by_lod([3, 1, 4]), "lod"), cost(by_lod([0, 2]), "empty"), cost(by_lod([2], 5.0), "steep"),
         cost(padded(), "padded")]
for given, note in ((by_lod([4, 1, 0, 3]), "lod"), (padded(), "padded")):
    CASES.append(Case("crf_decoding", given, {}, paths, note=note + " against labels"))
    CASES.append(Case("crf_decoding", {slot: value for slot, value in given.items() if slot != "Label"}, {}, paths,
                      note=note))
test_forward, test_gradient, test_device = checks(CASES)


def test_long_sequences_neither_overflow_nor_vanish():
    emission = rng.normal(size=(4000, TAGS)) * 30
    inputs = {"Emission": (emission, [[4000]]), "Transition": np.zeros((TAGS + 2, TAGS)),
              "Label": (np.zeros((4000, 1), np.int64), [[4000]])}
    largest = emission.max(1)
    alone = np.log(np.exp(emission - largest[:, None]).sum(1)) + largest - emission[:,
                                                                                    0]  # rows do not matter to others
    one = cost(inputs, "long")
    one.expect = {"LogLikelihood": alone.sum().reshape(1, 1)}
    check_forward(one)


@pytest.mark.parametrize("change, text", [
    ({"Label": (np.array([[0], [3]]), [[2]])}, "id 3 at position 1 is outside the tags of 3"),
    ({"Transition": np.zeros((TAGS, TAGS))}, r"expected Transition \[5, 3\] for 3 tags, got \[3, 3\]"),
    ({"Emission": np.zeros((2, TAGS))}, "is not a sequence: it has no LoD")])
def test_what_does_not_fit_is_refused(change, text):
    one = cost({**by_lod([2]), **change}, "bad")
    with pytest.raises(ProgramError, match=text):
        Built(one).run(["LogLikelihood_out_0"])


def test_a_length_beyond_the_padding_is_refused():
    one = cost({**padded(), "Length": np.array([[4], [5], [0]])}, "bad")
    with pytest.raises(ProgramError, match="the length of sequence 1 of Emission is not within 0 and 4"):
        Built(one).run(["LogLikelihood_out_0"])
