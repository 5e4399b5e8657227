"""Sentence pairs by number: a sample is (source ids, target ids behind the start, target ids before the end)."""

from fleet_mpi.data.sets import translation, wmt14, wmt16
from fleet_mpi.data.sets_by_number.samples import Samples, files_of, mode_of
from fleet_mpi.errors import UsageError


class WMT14(Samples):
    """English to French, with dictionaries of ``dict_size`` words."""

    def __init__(self, data_file=None, mode="train", dict_size=-1, download=True):
        self.mode, self.data_file = mode_of(self, mode, ("train", "test", "gen")), data_file
        self.dict_size = _size_of(self, "dict_size", dict_size)
        with files_of(self, download, {wmt14.URL_TRAIN: data_file}):
            self.src_dict, self.trg_dict = wmt14.get_dict(dict_size, reverse=False)
            self.data = list(getattr(wmt14, self.mode)(dict_size)())

    def get_dict(self, reverse=False):
        """The dictionaries of both languages: word to id, or id to word with ``reverse``."""
        return tuple(translation.turned(words) if reverse else words for words in (self.src_dict, self.trg_dict))


class WMT16(Samples):
    """English and German; ``lang`` is the source, the other one the target."""

    def __init__(self, data_file=None, mode="train", src_dict_size=-1, trg_dict_size=-1, lang="en", download=True):
        self.mode, self.data_file, self.lang = mode_of(self, mode, ("train", "test", "val")), data_file, lang
        self.src_dict_size = _size_of(self, "src_dict_size", src_dict_size)
        self.trg_dict_size = _size_of(self, "trg_dict_size", trg_dict_size)
        read = {"train": wmt16.train, "test": wmt16.test, "val": wmt16.validation}[self.mode]
        with files_of(self, download, {wmt16.DATA_URL: data_file}):
            self.src_dict = wmt16.get_dict(lang, src_dict_size)
            self.trg_dict = wmt16.get_dict("de" if lang == "en" else "en", trg_dict_size)
            self.data = list(read(src_dict_size, trg_dict_size, lang)())

    def get_dict(self, lang, reverse=False):
        """The dictionary of a language: word to id, or id to word with ``reverse``."""
        if lang not in ("en", "de"):
            raise UsageError(f"WMT16.get_dict: expected the language 'en' or 'de', got {lang!r}")
        words = self.src_dict if lang == self.lang else self.trg_dict
        return translation.turned(words) if reverse else words


def _size_of(dataset, name, size):
    if size <= 0:
        raise UsageError(f"{type(dataset).__name__}: expected {name} above 0, the number of words of the dictionary, "
                         f"got {size!r}")
    return size
