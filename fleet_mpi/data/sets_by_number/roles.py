"""Sentences with semantic roles by number."""

from fleet_mpi.data import home
from fleet_mpi.data.sets import conll05
from fleet_mpi.data.sets_by_number.samples import Samples, paths_of


class Conll05st(Samples):
    """A sample is nine arrays as long as a sentence; ``fleet_mpi.data.sets.conll05`` says which."""

    def __init__(self, data_file=None, word_dict_file=None, verb_dict_file=None, target_dict_file=None, emb_file=None,
                 download=True):
        given = dict(zip((conll05.DATA, conll05.WORDS, conll05.VERBS, conll05.LABELS),
                         (data_file, word_dict_file, verb_dict_file, target_dict_file)))
        paths = paths_of(self, download, "conll05st", {url: (path, md5) for (url, md5), path in given.items()})
        with home.named({url: path for (url, _), path in zip(given, paths or ())}):
            self.word_dict, self.predicate_dict, self.label_dict = conll05.get_dict()
            self.data = list(conll05.test()())
        self.data_file, self.word_dict_file, self.verb_dict_file, self.target_dict_file = paths or [None] * 4
        self.emb_file = emb_file

    def get_dict(self):
        """The dictionaries of words, verbs and labels."""
        return self.word_dict, self.predicate_dict, self.label_dict

    def get_embedding(self):
        """The path of the file with trained word vectors."""
        return self.emb_file if self.emb_file is not None else conll05.get_embedding()
