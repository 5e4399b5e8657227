"""NLTK's film reviews: the folder, the archive, and a stand-in whose mood can be told."""

import zipfile

import numpy as np
import pytest

from fleet_mpi.data.sets import sentiment

TEXTS = {"neg/cv000_1.txt": "Bad , bad film .", "neg/cv001_2.txt": "a bore", "pos/cv000_3.txt": "a GOOD film",
         "pos/cv001_4.txt": "isn't bad"}


def as_folder(data_home):
    for name, text in TEXTS.items():
        path = data_home / "corpora" / "movie_reviews" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (data_home / "corpora" / "movie_reviews" / "README").write_text("ignored")


def as_archive(data_home):
    (data_home / "corpora").mkdir()
    with zipfile.ZipFile(data_home / "corpora" / "movie_reviews.zip", "w") as archive:
        for name, text in TEXTS.items():
            archive.writestr(f"movie_reviews/{name}", text)
        archive.writestr("movie_reviews/README", "ignored")


@pytest.mark.parametrize("write", [as_folder, as_archive])
def test_words_are_numbered_by_frequency_and_bad_and_good_reviews_take_turns(data_home, write):
    write(data_home)
    words = sentiment.get_word_dict()
    assert words == [("bad", 0), ("a", 1), ("film", 2), ("'", 3), (",", 4), (".", 5), ("bore", 6), ("good", 7),
                     ("isn", 8),
                     ("t", 9)]
    assert sentiment.load_sentiment_data() == [([0, 4, 0, 2, 5], 0), ([1, 7, 2], 1), ([1, 6], 0), ([8, 3, 9, 0], 1)]


def test_the_stand_in_is_cut_at_1600_and_its_mood_can_be_counted(data_home, capfd):
    count = len(sentiment.get_word_dict())
    train, test = list(sentiment.train()), list(sentiment.test())
    assert (len(train), len(test)) == (1600, 400) and [label for _, label in test[:4]] == [0, 1, 0, 1]

    def counts(samples):
        return (np.stack([np.bincount(ids, minlength=count) for ids, _ in samples]),
                np.array([one for _, one in samples]))
    x, mood = counts(train)
    score = np.log((x[mood == 1].sum(0) + 1) / (x[mood == 0].sum(0) + 1))
    x, mood = counts(test)
    assert (((x @ score) > 0) == (mood == 1)).mean() > 0.85
    assert len(capfd.readouterr().err.splitlines()) == 1
