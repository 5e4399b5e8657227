"""Sentence pairs of WMT 16 (Multi30K), English and German: see ``translation`` for what a sample is.

File: wmt16.tar.gz under ``DATA_HOME/wmt16``. The dictionaries are counted from its training pairs. The stand-in
translates made-up words one by one, with some changes of order.
"""

import functools
import tarfile
from collections import Counter

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets import translation
from fleet_mpi.errors import UsageError

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"
TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
START_MARK, END_MARK, UNK_MARK = translation.MARKS

_LANGUAGES = {"en": TOTAL_EN_WORDS, "de": TOTAL_DE_WORDS}


def train(src_dict_size, trg_dict_size, src_lang="en"):
    """A reader over the training pairs; ``src_lang``: "en" or "de", the other one is the target."""
    return _reader("train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size, trg_dict_size, src_lang="en"):
    """A reader over the test pairs."""
    return _reader("test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size, trg_dict_size, src_lang="en"):
    """A reader over the validation pairs."""
    return _reader("val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang, dict_size, reverse=False):
    """The dictionary of a language, word to id, or id to word: the marks, then the words by how often they come."""
    if lang not in _LANGUAGES:
        raise UsageError(f"wmt16: expected the language 'en' or 'de', got {lang!r}")
    if dict_size < len(translation.MARKS):
        raise UsageError(f"wmt16: expected dictionaries of at least the {len(translation.MARKS)} marks, got "
                         f"{dict_size!r}")
    size = min(dict_size, _LANGUAGES[lang])
    found = translation.numbered([*translation.MARKS, *_counted(_path(), lang)][:size])
    return translation.turned(found) if reverse else found


def fetch():
    """Say now whether real or synthetic pairs will be used."""
    _path()


def _reader(part, src_dict_size, trg_dict_size, src_lang):
    trg_lang = "de" if src_lang == "en" else "en"
    path, turn = _path(), -1 if src_lang == "de" else 1
    source_ids, target_ids = get_dict(src_lang, src_dict_size), get_dict(trg_lang, trg_dict_size)

    def read_pairs():
        for pair in translation.pairs_of(_lines(path, part)):
            source, target = pair[::turn]
            yield translation.sample_of(source, target, source_ids, target_ids)

    return read_pairs


def _path():
    path = home.find(DATA_URL, "wmt16", DATA_MD5, "wmt16.tar.gz")
    if path is None:
        notices.stand_in("wmt16", "pairs of sentences of made-up words", home.folder("wmt16"))
    return path


# Scripts ask for readers and dictionaries again and again; the original keeps the counted words in files.
@functools.lru_cache(maxsize=4)
def _counted(path, lang):
    """The words of the training pairs, frequent ones first, then as they come."""
    counts = Counter()
    for pair in translation.pairs_of(_lines(path, "train")):
        counts.update(pair[lang == "de"].split())
    return [word for word, _ in counts.most_common()]


def _lines(path, part):
    if path is None:
        yield from translation.made_up_lines(part)
        return
    with tarfile.open(path) as archive:
        try:
            yield from archive.extractfile(f"wmt16/{part}")
        except KeyError:
            raise UsageError(f"wmt16: {path} has no member wmt16/{part}") from None
