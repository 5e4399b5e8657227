"""Semantic roles: the files' brackets and dictionaries, and a stand-in in which verb and place decide."""

import gzip
import io
import tarfile
from collections import Counter, defaultdict

import numpy as np
import pytest

from fleet_mpi.data.sets import conll05
from fleet_mpi.errors import EnvironmentProblem, UsageError

WORDS = "The\ncat\nsat\nand\nate\n\nGo\n\n"
PROPS = "- (A0* (A0*\n- *) *)\nsit (V*) *\n- * *\neat * (V*)\n\ngo (V*)\n\n"


@pytest.fixture
def files(data_home):
    folder = data_home / "conll05st"
    folder.mkdir()
    (folder / "wordDict.txt").write_text("<unk>\nbos\neos\nThe\ncat\nsat\nand\nate\n")
    (folder / "verbDict.txt").write_text("go\nsit\neat\n")
    (folder / "targetDict.txt").write_text("B-V\nB-A0\nI-A0\nI-V\nO\n")
    with tarfile.open(folder / "conll05st-tests.tar.gz", "w:gz") as tar:
        for kind, text in (("words", WORDS), ("props", PROPS)):
            content = gzip.compress(text.encode())
            info = tarfile.TarInfo(f"conll05st-release/test.wsj/{kind}/test.wsj.{kind}.gz")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return folder


def test_every_verb_of_a_sentence_is_a_sample_of_nine_lists(files):
    samples = list(conll05.test()())
    sat = ([3, 4, 5, 6, 7], [3] * 5, [4] * 5, [5] * 5, [6] * 5, [7] * 5, [1] * 5, [1] * 5, [0, 1, 2, 4, 4])
    ate = ([3, 4, 5, 6, 7], [5] * 5, [6] * 5, [7] * 5, [2] * 5, [2] * 5, [2] * 5, [0, 0, 1, 1, 1], [0, 1, 4, 4, 2])
    go = ([0], [1], [1], [0], [2], [2], [0], [1], [2])
    assert samples == [sat, ate, go]


def test_labels_are_numbered_by_role_in_every_process_alike(files):
    assert conll05.get_dict()[2] == {"B-A0": 0, "I-A0": 1, "B-V": 2, "I-V": 3, "O": 4}


def test_brackets_become_labels():
    assert conll05.labels_of(["*", "(A0*", "*", "*)", "(V*)", "*"]) == ["O", "B-A0", "I-A0", "I-A0", "B-V", "O"]
    with pytest.raises(UsageError, match="'A0'"):
        conll05.labels_of(["A0"])


def test_the_word_vectors_of_the_files_have_to_be_there(files):
    with pytest.raises(EnvironmentProblem, match="emb"):
        conll05.get_embedding()
    (files / "emb").write_bytes(b"")
    assert conll05.get_embedding() == str(files / "emb")


def test_the_word_vectors_of_the_stand_in_fit_its_words(data_home):
    with open(conll05.get_embedding(), "rb") as file:
        file.read(16)
        assert np.fromfile(file, np.float32).reshape(len(conll05.get_dict()[0]), 32).std() > 0


def test_in_the_stand_in_verb_and_place_foretell_the_role(data_home, capfd):
    words, verbs, labels = conll05.get_dict()
    samples = list(conll05.test()())
    seen, right, count = defaultdict(Counter), 0, 0
    for number, (ids, *_, ctx_0, _, _, verb, _, wanted) in enumerate(samples):
        assert all(len(one) == len(ids) for one in samples[number])
        place, kinds = ids.index(ctx_0[0]), np.searchsorted([153, 193, 213], ids, side="right").tolist()
        for at, label in enumerate(wanted):
            key = verb[0], at > place, kinds[at], kinds[at - 1] if at else None
            if number < 1200:
                seen[key][label] += 1
            else:
                count += 1
                right += bool(seen[key]) and seen[key].most_common(1)[0][0] == label
    assert set(labels.values()) == set(range(9)) and len(verbs) == 40
    assert right / count > 0.9  # the commonest label alone: 0.2
    assert len(capfd.readouterr().err.splitlines()) == 1
