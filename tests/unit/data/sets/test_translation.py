"""wmt14, wmt16 and what they share: pairs and dictionaries of the archives, and a stand-in that can be translated."""

import io
import tarfile

import pytest

from fleet_mpi.data.sets import translation, wmt14, wmt16
from fleet_mpi.errors import UsageError


def write(path, members):
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def french(data_home):
    long = " ".join(["the"] * 90)
    write(data_home / "wmt14" / "wmt14.tgz", {
        "wmt14/src.dict": "<s>\n<e>\n<unk>\nthe\ncat\n", "wmt14/trg.dict": "<s>\n<e>\n<unk>\nle\nchat\n",
        "wmt14/train/train": f"the cat\tle chat\nno pair\n{long}\tle\nthe dog\tle chien\n",
        "wmt14/test/test": "cat\tchat\n",
        "wmt14/gen/gen": "the\tle\n"})


@pytest.fixture
def german(data_home):
    wmt16._counted.cache_clear()
    write(data_home / "wmt16" / "wmt16.tar.gz", {
        "wmt16/train": "a cat\teine Katze\na dog\tein Hund\n", "wmt16/test": "a bird\tein Hund\n",
        "wmt16/val": "cat\tKatze\n"})


def test_pairs_of_wmt14_have_marks_and_long_ones_are_left_out(french):
    assert list(wmt14.train(30)()) == [([0, 3, 4, 1], [0, 3, 4], [3, 4, 1]), ([0, 3, 2, 1], [0, 3, 2], [3, 2, 1])]
    assert list(wmt14.test(4)()) == [([0, 2, 1], [0, 2], [2, 1])]
    assert list(wmt14.gen(4)()) == [([0, 3, 1], [0, 3], [3, 1])]


def test_dictionaries_of_wmt14_are_cut_and_turned(french):
    assert wmt14.get_dict(4) == ({0: "<s>", 1: "<e>", 2: "<unk>", 3: "the"}, {0: "<s>", 1: "<e>", 2: "<unk>", 3: "le"})
    assert wmt14.get_dict(5, reverse=False)[1]["chat"] == 4


def test_dictionaries_of_wmt16_are_counted_from_the_training_pairs(german):
    assert wmt16.get_dict("en", 100) == {"<s>": 0, "<e>": 1, "<unk>": 2, "a": 3, "cat": 4, "dog": 5}
    assert wmt16.get_dict("de", 5, reverse=True) == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "eine", 4: "Katze"}


def test_pairs_of_wmt16_go_either_way(german):
    assert list(wmt16.test(100, 100)()) == [([0, 3, 2, 1], [0, 5, 6], [5, 6, 1])]
    assert list(wmt16.test(100, 100, src_lang="de")()) == [([0, 5, 6, 1], [0, 3, 2], [3, 2, 1])]
    assert list(wmt16.validation(100, 100)()) == [([0, 4, 1], [0, 4], [4, 1])]


def test_what_is_no_language_or_dictionary_or_is_missing_is_refused(french, german):
    with pytest.raises(UsageError, match="'fr'"):
        wmt16.train(10, 10, "fr")
    with pytest.raises(UsageError, match="marks"):
        wmt16.get_dict("en", 2)
    with pytest.raises(UsageError, match="marks"):
        wmt14.train(2)
    with pytest.raises(UsageError, match="no member"):
        list(wmt14._members(wmt14._path(), "other"))
    with pytest.raises(UsageError, match="no member wmt16/other"):
        list(wmt16._lines(wmt16._path(), "other"))


def test_the_stand_ins_are_announced_and_stay_within_their_dictionaries(data_home, capfd):
    assert len(list(wmt14.train(100)())) == len(list(wmt16.train(100, 50)())) == 3000
    assert max(max(source) for source, _, _ in wmt14.test(100)()) < 100
    assert max(max(target) for _, target, _ in wmt16.test(100, 50)()) < 50
    assert len(capfd.readouterr().err.splitlines()) == 2


def test_a_stand_in_is_translated_by_its_words_and_their_order(data_home):
    source, target = translation.made_up_vocabularies()
    words = dict(zip(source, target))
    ordered = 0
    for line in (lines := list(translation.made_up_lines("test"))):
        one, other = (text.split() for text in line.split("\t"))
        assert sorted(words[word] for word in one) == sorted(other)
        ordered += [words[word] for word in one] == other
    assert 0.05 < ordered / len(lines) < 0.95 and list(translation.made_up_lines("test")) == lines
