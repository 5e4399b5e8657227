"""Ops of program/ops/sequence_metric.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, checks


def line(text):
    return [ord(letter) for letter in text]


def strings(*words):
    return np.array(sum(map(line, words), [])).reshape(-1, 1), [[len(word) for word in words]]


def padded(*words):
    longest = max(map(len, words))
    return np.array([line(word.ljust(longest, "~")) for word in words])


def lengths(*words):
    return np.array([[len(word)] for word in words])


HYPS, REFS = ("kitten", "flaw", "", "same"), ("sitting", "lawn", "ab", "same")
DISTANCES = np.array([[3.0], [2.0], [2.0], [0.0]])
LENGTHS = np.array([[7.0], [4.0], [2.0], [4.0]])
FOUND = {"SequenceNum": np.array([4]), "Out": DISTANCES}

# B-0 I-0 O B-1 I-1 B-1 against another: IOB with three types, 6 is no chunk.
LABEL = [0, 1, 6, 2, 3, 2, 4]
GUESS = [0, 1, 6, 2, 2, 3, 4]


def chunks(guess, label, expected, scheme="IOB", types=3, excluded=(), is_padded=False, note=""):
    found, wanted, right = expected
    precision, recall = right / max(found, 1), right / max(wanted, 1)
    shape = (lambda one: np.array([one, one])) if is_padded else lambda one: (np.array(one).reshape(-1, 1),
                                                                              [[len(one)]])
    inputs = {"Inference": shape(guess), "Label": shape(label)}
    if is_padded:
        inputs["SeqLength"] = np.array([[len(label)], [0]])
    expect = {"Precision": [precision], "Recall": [recall],
              "F1-Score": [2 * precision * recall / (precision + recall) if right else 0.0],
              "NumInferChunks": [found], "NumLabelChunks": [wanted], "NumCorrectChunks": [right]}
    return Case("chunk_eval", inputs, {"num_chunk_types": types, "chunk_scheme": scheme,
                                       "excluded_chunk_types": list(excluded)},
                {slot: np.array(value) for slot, value in expect.items()}, note=note)


CASES = [
    Case("edit_distance", {"Hyps": strings(*HYPS), "Refs": strings(*REFS)}, {}, FOUND),
    Case("edit_distance", {"Hyps": strings(*HYPS), "Refs": strings(*REFS)}, {"normalized": True},
         {"SequenceNum": np.array([4]), "Out": DISTANCES / LENGTHS}, note="normalized"),
    Case("edit_distance", {"Hyps": padded(*HYPS), "Refs": padded(*REFS), "HypsLength": lengths(*HYPS),
                           "RefsLength": lengths(*REFS)}, {}, FOUND, note="padded"),
    chunks(GUESS, LABEL, (4, 4, 2), note="IOB"),
    chunks(GUESS, LABEL, (2, 2, 2), excluded=[1], note="one type excluded"),
    chunks(GUESS, LABEL, (4, 4, 2), is_padded=True, note="padded"),
    chunks([6] * 3, [6] * 3, (0, 0, 0), note="nothing"),
    # I E | I | E of one type, 2 is no chunk: an end closes, the next element opens.
    chunks([0, 1, 0, 1, 2], [0, 1, 1, 0, 2], (2, 3, 1), "IOE", 1, note="IOE"),
    # B I E | S against B E | ... , 4 is no chunk.
    chunks([0, 1, 2, 3, 4], [0, 1, 2, 0, 2], (2, 2, 1), "IOBES", 1, note="IOBES"),
    chunks([0, 0, 1, 2, 2], [0, 0, 1, 1, 2], (2, 2, 1), "plain", 2, note="plain"),
]
test_forward, test_device = checks(CASES)


@pytest.mark.parametrize("case, text", [
    (Case("edit_distance", {"Hyps": strings("a", "b"), "Refs": strings("a", "")}, {"normalized": True},
          {"SequenceNum": np.array([2]), "Out": np.zeros((2, 1))}), "1 of the references are empty"),
    (Case("edit_distance", {"Hyps": strings("a", "b"), "Refs": strings("a")}, {},
          {"SequenceNum": np.array([2]), "Out": np.zeros((2, 1))}), "for each of 2 sequences, got 1"),
    (chunks([0, 7], [0, 1], (1, 1, 1)), "id 7 at position 1 is outside the inferred chunk labels"),
    (chunks([0], [0], (1, 1, 1), "BIO"), "expected one of IOB, IOE, IOBES, plain, got 'BIO'")])
def test_what_does_not_fit_is_refused(case, text):
    with pytest.raises(ProgramError, match=text):
        built = Built(case)
        built.run([names[0] for names in built.outputs.values()])
