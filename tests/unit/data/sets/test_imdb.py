"""Reviews: the archive's words, and a stand-in whose mood can be told."""

import io
import re
import tarfile

import numpy as np

from fleet_mpi.data.sets import imdb


def write_archive(data_home, reviews):
    (data_home / "imdb").mkdir()
    with tarfile.open(data_home / "imdb" / "aclImdb_v1.tar.gz", "w:gz") as archive:
        for name, text in reviews.items():
            info = tarfile.TarInfo(f"aclImdb/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))


def test_reviews_lose_punctuation_and_case_and_get_their_label(data_home):
    write_archive(data_home, {"train/pos/0_9.txt": b"A GREAT, great film!\n", "train/neg/0_2.txt": b"a bad film",
                              "test/pos/0_8.txt": b"great", "train/unsup/0_0.txt": b"ignored", "README": b"ignored"})
    words = imdb.build_dict(re.compile(r"aclImdb/train/(pos|neg)/.*\.txt$"), 1)
    assert dict(words) == {"a": 0, "film": 1, "great": 2, "<unk>": 3}
    assert list(imdb.train(words)()) == [([0, 2, 2, 1], 0), ([0, 3, 1], 1)]
    assert list(imdb.test(words)()) == [([2], 0)]


def test_the_word_dict_keeps_frequent_words_of_both_parts_only(data_home):
    write_archive(data_home, {"train/pos/0.txt": b"often " * 100, "test/neg/0.txt": b"often " * 100 + b"rare " * 150})
    assert dict(imdb.word_dict()) == {"often": 0, "<unk>": 1}


def test_the_stand_in_is_repeatable_and_its_mood_can_be_counted(data_home, capfd):
    words = imdb.word_dict()
    assert words == imdb.word_dict() and len(words) > 100
    train, test = list(imdb.train(words)()), list(imdb.test(words)())
    assert (len(train), len(test)) == (2000, 500)

    def counts(samples):
        return np.stack([np.bincount(ids, minlength=len(words)) for ids, _ in samples]), [label for _, label in samples]

    x, mood = counts(train)
    score = np.log((x[np.equal(mood, 1)].sum(0) + 1) / (x[np.equal(mood, 0)].sum(0) + 1))
    x, mood = counts(test)
    assert (((x @ score) > 0) == np.equal(mood, 1)).mean() > 0.85
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
