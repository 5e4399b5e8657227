"""Film reviews (NLTK's movie_reviews): a sample is (word ids of the review, 0 for a bad and 1 for a good one).

Files: ``corpora/movie_reviews`` under ``DATA_HOME``, as a folder or as ``movie_reviews.zip``, where NLTK's downloader
puts it; NLTK itself is not needed. Bad and good reviews come in turn; the first 1600 are for training.
"""

import functools
import os
import re
import zipfile
from collections import Counter

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets.made_up_reviews import reviews

NUM_TRAINING_INSTANCES = 1600
NUM_TOTAL_INSTANCES = 2000

_LABELS = {"neg": 0, "pos": 1}
_NAME = re.compile(r"(?:.*/)?movie_reviews/(neg|pos)/([^/]+\.txt)$")
_WORD = re.compile(r"\w+|[^\w\s]+")  # as NLTK cuts this corpus: words, and marks between them
_EACH = NUM_TOTAL_INSTANCES // 2


def get_word_dict():
    """[(word, id)] of all words, frequent ones first, then by spelling (which the original leaves to chance)."""
    counts = Counter(word for _, words in _reviews(home.folder("corpora")) for word in words)
    return [(word, number) for number, (word,
                                        _) in enumerate(sorted(counts.items(), key=lambda one: (-one[1], one[0])))]


def load_sentiment_data():
    """[(ids, label)] of all reviews."""
    ids = dict(get_word_dict())
    return [([ids[word] for word in words], label) for label, words in _reviews(home.folder("corpora"))]


def train():
    """Iterate over the samples for training; the function itself is the reader."""
    return iter(load_sentiment_data()[:NUM_TRAINING_INSTANCES])


def test():
    """Iterate over the samples for testing; the function itself is the reader."""
    return iter(load_sentiment_data()[NUM_TRAINING_INSTANCES:])


def fetch():
    """Say now whether real or synthetic reviews will be used."""
    _reviews(home.folder("corpora"))


@functools.lru_cache(maxsize=1)
def _reviews(folder):
    """[(label, words)], bad and good in turn."""
    found = {mood: sorted(texts.items()) for mood, texts in _texts(folder).items()}
    if all(found.values()):
        told = {mood: [_WORD.findall(text.lower()) for _, text in texts] for mood, texts in found.items()}
    else:
        notices.stand_in("sentiment", "made-up reviews with words that good or bad ones prefer", folder)
        told = {mood: list(reviews(mood, _EACH, [5, label])) for mood, label in _LABELS.items()}
    return [(_LABELS[mood], words) for pair in zip(told["neg"], told["pos"])
            for mood, words in zip(("neg", "pos"), pair)]


def _texts(folder):
    """{mood: {file name: text}} of the folder, else of the archive, else empty."""
    found = {mood: {} for mood in _LABELS}
    for name, content in _files(folder):
        mood, file = _NAME.match(name).groups()
        found[mood][file] = content.decode("latin-1")
    return found


def _files(folder):
    archive = os.path.join(folder, "movie_reviews.zip")
    if os.path.isdir(os.path.join(folder, "movie_reviews")):
        for mood in _LABELS:
            above = os.path.join(folder, "movie_reviews", mood)
            for file in sorted(os.listdir(above)) if os.path.isdir(above) else ():
                name = f"movie_reviews/{mood}/{file}"
                if _NAME.match(name):
                    with open(os.path.join(folder, name), "rb") as stream:
                        yield name, stream.read()
    elif os.path.isfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield from ((name, opened.read(name)) for name in opened.namelist() if _NAME.match(name))
