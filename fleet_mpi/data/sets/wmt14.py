"""Sentence pairs of WMT 14, English to French: see ``translation`` for what a sample is.

File: wmt14.tgz under ``DATA_HOME/wmt14``. The stand-in translates made-up words one by one, with some changes of order.
"""

import tarfile

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets import translation
from fleet_mpi.data.sets.words import decode
from fleet_mpi.errors import UsageError

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
START, END, UNK = translation.MARKS
UNK_IDX = 2

_LONGEST = 80  # longer sentences are left out, as in the original


def train(dict_size):
    """A reader over the training pairs, with dictionaries of ``dict_size`` words."""
    return _reader("train", dict_size)


def test(dict_size):
    """A reader over the test pairs."""
    return _reader("test", dict_size)


def gen(dict_size):
    """A reader over the pairs to try a trained model with."""
    return _reader("gen", dict_size)


def get_dict(dict_size, reverse=True):
    """The dictionaries of both languages: id to word, or word to id with ``reverse=False``."""
    found = tuple(translation.numbered(_words(kind, dict_size)) for kind in ("src", "trg"))
    return tuple(map(translation.turned, found)) if reverse else found


def fetch():
    """Say now whether real or synthetic pairs will be used."""
    _path()


def _reader(part, dict_size):
    if dict_size < len(translation.MARKS):
        raise UsageError(f"wmt14: dict_size: expected at least the {len(translation.MARKS)} marks, got {dict_size!r}")
    path = _path()

    def read_pairs():
        source_ids, target_ids = get_dict(dict_size, reverse=False)
        for source, target in translation.pairs_of(_lines(path, part)):
            words, wanted, following = translation.sample_of(source, target, source_ids, target_ids)
            if len(words) <= _LONGEST and len(wanted) - 1 <= _LONGEST:
                yield words, wanted, following

    return read_pairs


def _path():
    path = home.find(URL_TRAIN, "wmt14", MD5_TRAIN)
    if path is None:
        notices.stand_in("wmt14", "pairs of sentences of made-up words", home.folder("wmt14"))
    return path


def _words(kind, dict_size):
    """The first words of a dictionary; ``kind``: src or trg."""
    path = _path()
    if path is None:
        return [*translation.MARKS, *translation.made_up_vocabularies()[kind == "trg"]][:dict_size]
    lines = _members(path, f"{kind}.dict")
    return [decode(line.strip()) for _, line in zip(range(dict_size), lines)]


def _lines(path, part):
    return translation.made_up_lines(part) if path is None else _members(path, f"{part}/{part}")


def _members(path, ending):
    """The lines of all files in the archive whose names end so."""
    found = False
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(ending):
                found = True
                yield from archive.extractfile(member)
    if not found:
        raise UsageError(f"wmt14: {path} has no member that ends with {ending}")
