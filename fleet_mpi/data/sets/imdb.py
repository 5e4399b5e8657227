"""Film reviews: a sample is (word ids of the review, 0 for a good and 1 for a bad one).

File: aclImdb_v1.tar.gz under ``DATA_HOME/imdb``. The stand-in mixes common words with words that
good or bad reviews prefer.
"""

import re
import string
import tarfile
from collections import Counter

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.readers import cache
from fleet_mpi.data.sets.made_up_reviews import reviews
from fleet_mpi.data.sets.words import UNKNOWN, decode, vocabulary_of

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"

_ALL = re.compile(r"aclImdb/(train|test)/(pos|neg)/[^/]*\.txt$")
_PUNCTUATION = string.punctuation.encode()
_SYNTHETIC_COUNT = {"train": 1000, "test": 250}


def word_dict():
    """The dictionary of all words that come more than 150 times, with ``<unk>`` as the last id."""
    return build_dict(_ALL, 150)


def build_dict(pattern, cutoff):
    """The dictionary of the words of all reviews whose names match, seen more than ``cutoff`` times."""
    counts = Counter()
    for words in tokenize(pattern):
        counts.update(words)
    return vocabulary_of(counts, cutoff)


def train(word_idx):
    """A reader over the training reviews, good ones first; read from the archive at the first pass."""
    return _split_reader("train", word_idx)


def test(word_idx):
    """A reader over the test reviews, good ones first; read from the archive at the first pass."""
    return _split_reader("test", word_idx)


def reader_creator(pos_pattern, neg_pattern, word_idx):
    """A reader of (ids, label) over the reviews whose names match either pattern."""
    unknown = word_idx[UNKNOWN]

    def read_reviews():
        for label, pattern in enumerate((pos_pattern, neg_pattern)):
            for words in tokenize(pattern):
                yield [word_idx.get(word, unknown) for word in words], label

    return cache(read_reviews)


def tokenize(pattern):
    """The words of each review whose name in the archive matches, without punctuation, in lower case."""
    path = home.find(URL, "imdb", MD5)
    if path is None:
        notices.stand_in("imdb", "made-up reviews with words that good or bad ones prefer", home.folder("imdb"))
        yield from (words for name, words in _synthetic_reviews() if pattern.match(name))
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if pattern.match(member.name):
                text = archive.extractfile(member).read().translate(None, _PUNCTUATION).lower()
                yield [decode(word) for word in text.split()]


def fetch():
    """Say now whether real or synthetic reviews will be used."""
    next(tokenize(_ALL), None)


def _split_reader(split, word_idx):
    good, bad = (re.compile(rf"aclImdb/{split}/{mood}/.*\.txt$") for mood in ("pos", "neg"))
    return reader_creator(good, bad, word_idx)


def _synthetic_reviews():
    for split, count in _SYNTHETIC_COUNT.items():
        for mood in ("pos", "neg"):
            for number, words in enumerate(reviews(mood, count, [3, split == "train", mood == "pos"])):
                yield f"aclImdb/{split}/{mood}/{number}_0.txt", words
