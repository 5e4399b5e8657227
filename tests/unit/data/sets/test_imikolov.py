"""Penn Treebank: n-grams and sequences of the archive, and a stand-in with likely followers."""

import io
import tarfile
from collections import Counter, defaultdict

import pytest

from fleet_mpi.data.sets import imikolov
from fleet_mpi.data.sets.imikolov import DataType
from fleet_mpi.errors import UsageError


@pytest.fixture
def archive(data_home):
    (data_home / "imikolov").mkdir()
    with tarfile.open(data_home / "imikolov" / "simple-examples.tgz", "w:gz") as tar:
        for name, text in (("ptb.train.txt", b" a b <unk> \n a c\n"), ("ptb.valid.txt", b"b a\n")):
            info = tarfile.TarInfo(f"./simple-examples/data/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))


def test_the_dictionary_counts_both_parts_and_sentence_marks(archive):
    # a, <s> and <e> come three times, b twice, c once; by spelling "<" is before letters
    assert dict(imikolov.build_dict(0)) == {"<e>": 0, "<s>": 1, "a": 2, "b": 3, "c": 4, "<unk>": 5}
    assert "c" not in imikolov.build_dict(1)


def test_ngrams_run_from_start_to_end_mark(archive):
    words = imikolov.build_dict(0)
    assert list(imikolov.train(words, 3)()) == [(1, 2, 3), (2, 3, 5), (3, 5, 0), (1, 2, 4), (2, 4, 0)]
    assert list(imikolov.test(words, 5)()) == []


def test_sequences_are_shifted_by_one_and_too_long_ones_left_out(archive):
    words = imikolov.build_dict(0)
    assert list(imikolov.train(words, 0, DataType.SEQ)()) == [([1, 2, 3, 5], [2, 3, 5, 0]), ([1, 2, 4], [2, 4, 0])]
    assert list(imikolov.train(words, 3, DataType.SEQ)()) == [([1, 2, 4], [2, 4, 0])]


def test_a_data_type_or_length_that_means_nothing_is_refused(data_home):
    with pytest.raises(UsageError, match="NGRAM"):
        imikolov.train({"<unk>": 0}, 3, "ngram")
    with pytest.raises(UsageError, match="n=0"):
        imikolov.train({"<unk>": 0}, 0)


def test_in_the_stand_in_the_last_word_foretells_the_next(data_home, capfd):
    words = imikolov.build_dict()
    assert len(words) > 211  # an id that word2vec scripts infer with
    followers = defaultdict(Counter)
    for before, after in imikolov.train(words, 2)():
        followers[before][after] += 1
    pairs = list(imikolov.test(words, 2)())
    hits = sum(followers[before].most_common(1)[0][0] == after for before, after in pairs)
    assert hits / len(pairs) > 0.4  # by chance below 0.02
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
