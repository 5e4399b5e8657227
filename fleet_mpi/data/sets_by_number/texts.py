"""House prices, film reviews and sentences, by number."""

import re

import numpy as np

from fleet_mpi.data.sets import imdb, imikolov, uci_housing
from fleet_mpi.data.sets_by_number.samples import Samples, files_of, mode_of
from fleet_mpi.errors import UsageError


class UCIHousing(Samples):
    """A sample is (13 features, price), float32 [13] and [1]."""

    def __init__(self, data_file=None, mode="train", download=True):
        self.mode, self.data_file, self.dtype = mode_of(self, mode, ("train", "test")), data_file, "float32"
        with files_of(self, download, {uci_housing.URL: data_file}):
            read = uci_housing.train() if self.mode == "train" else uci_housing.test()
            self.data = [np.concatenate(sample) for sample in read()]

    def __getitem__(self, idx):
        row = self.data[idx].astype(self.dtype)
        return row[:-1], row[-1:]


class Imdb(Samples):
    """A sample is (word ids of a review, [0] for a good one or [1] for a bad one); ``word_idx`` is the dictionary."""

    def __init__(self, data_file=None, mode="train", cutoff=150, download=True):
        self.mode, self.data_file = mode_of(self, mode, ("train", "test")), data_file
        with files_of(self, download, {imdb.URL: data_file}):
            self.word_idx = imdb.build_dict(re.compile(r"aclImdb/(train|test)/(pos|neg)/.*\.txt$"), cutoff)
            read = imdb.train(self.word_idx) if self.mode == "train" else imdb.test(self.word_idx)
            samples = list(read())
        self.docs, self.labels = [ids for ids, _ in samples], [label for _, label in samples]
        self.data = [(ids, [label]) for ids, label in samples]


class Imikolov(Samples):
    """Sentences as n-grams, a sample being ``window_size`` ids, or as sequences, (ids behind ``<s>``, ids before
    ``<e>``)."""

    def __init__(self, data_file=None, data_type="NGRAM", window_size=-1, mode="train", min_word_freq=50,
                 download=True):
        self.mode, self.data_file = mode_of(self, mode, ("train", "test")), data_file
        self.data_type = str(data_type).upper()
        if self.data_type not in ("NGRAM", "SEQ"):
            raise UsageError(f"Imikolov: expected the data_type NGRAM or SEQ, got {data_type!r}")
        self.window_size, self.min_word_freq = window_size, min_word_freq
        with files_of(self, download, {imikolov.URL: data_file}):
            self.word_idx = imikolov.build_dict(min_word_freq)
            read = imikolov.train if self.mode == "train" else imikolov.last_part
            self.data = list(read(self.word_idx, window_size, getattr(imikolov.DataType, self.data_type))())
