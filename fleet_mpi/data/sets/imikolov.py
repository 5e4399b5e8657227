"""Penn Treebank sentences: n-grams of word ids, or (source, target) id lists, for language models.

File: simple-examples.tgz under ``DATA_HOME/imikolov``. In the stand-in every word has a few words
that like to follow it.
"""

import tarfile
from collections import Counter

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets.words import UNKNOWN, decode, made_up_words, vocabulary_of
from fleet_mpi.errors import UsageError

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"

_TRAIN, _VALID, _TEST = "ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"
_START, _END = "<s>", "<e>"
_SYNTHETIC_COUNT = {_TRAIN: 3000, _VALID: 300, _TEST: 300}
_SEEDS = {_TRAIN: 1, _VALID: 0, _TEST: 2}
_FOLLOWERS = np.array([0.55, 0.25, 0.15, 0.05])


class DataType:
    """What a sample is: ``NGRAM`` a tuple of n ids, ``SEQ`` a pair of id lists shifted by one."""

    NGRAM = 1
    SEQ = 2


def build_dict(min_word_freq=50):
    """The dictionary of words (with ``<s>`` and ``<e>``) seen more often than that; last ``<unk>``."""
    counts = Counter()
    for part in (_TRAIN, _VALID):
        for words in _sentences(part):
            counts.update(words)
            counts.update((_START, _END))
    return vocabulary_of(counts, min_word_freq)


def train(word_idx, n, data_type=DataType.NGRAM):
    """A reader over the training text; ``n`` is the n-gram's length, or the longest sequence (0: any)."""
    return _reader(_TRAIN, word_idx, n, data_type)


def test(word_idx, n, data_type=DataType.NGRAM):
    """A reader over the validation text; ``n`` as for ``train``."""
    return _reader(_VALID, word_idx, n, data_type)


def last_part(word_idx, n, data_type=DataType.NGRAM):
    """A reader over the file named test, which ``test`` leaves alone; ``n`` as for ``train``."""
    return _reader(_TEST, word_idx, n, data_type)


def fetch():
    """Say now whether real or synthetic text will be used."""
    next(_sentences(_VALID), None)


def _reader(part, word_idx, n, data_type):
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise UsageError(f"imikolov: data_type is DataType.NGRAM or DataType.SEQ, got {data_type!r}")
    if data_type == DataType.NGRAM and n < 1:
        raise UsageError(f"imikolov: an n-gram has at least 1 word, got n={n!r}")
    cut = _ngrams if data_type == DataType.NGRAM else _sequences
    unknown = word_idx[UNKNOWN]

    def read_sentences():
        for words in _sentences(part):
            ids = [word_idx.get(word, unknown) for word in words]
            yield from cut(ids, word_idx.get(_START, unknown), word_idx.get(_END, unknown), n)

    return read_sentences


def _ngrams(ids, start, end, n):
    ids = [start, *ids, end]
    for last in range(n, len(ids) + 1):
        yield tuple(ids[last - n:last])


def _sequences(ids, start, end, n):
    if n <= 0 or len(ids) + 1 <= n:
        yield [start, *ids], [*ids, end]


def _sentences(part):
    path = home.find(URL, "imikolov", MD5)
    if path is None:
        notices.stand_in("imikolov", "sentences of made-up words with likely followers", home.folder("imikolov"))
        yield from _synthetic_sentences(part)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.endswith(f"simple-examples/data/{part}"):
                for line in archive.extractfile(member):
                    yield [decode(word) for word in line.split()]
                return
    raise UsageError(f"imikolov: {path} has no member simple-examples/data/{part}")


def _synthetic_sentences(part):
    # Enough of them for the dictionary to have the ids that scripts write down, 211 for one.
    words = made_up_words(300, 5)
    followers = np.random.default_rng(11).integers(0, len(words), (len(words), len(_FOLLOWERS))).tolist()
    bounds = _FOLLOWERS.cumsum()
    rng = np.random.default_rng([13, _SEEDS[part]])
    for _ in range(_SYNTHETIC_COUNT[part]):
        word = int(rng.integers(len(words)))
        sentence = [words[word]]
        # Rounding may leave the last bound just below 1: the choice is kept within the list.
        for choice in np.searchsorted(bounds, rng.random(rng.integers(5, 25))).tolist():
            word = followers[word][min(choice, len(bounds) - 1)]
            sentence.append(words[word])
        yield sentence
