"""Word dictionaries of the text sets, and made-up words and texts for their stand-ins.

Knows nothing of files.
"""

import numpy as np

UNKNOWN = "<unk>"


class Vocabulary(dict):
    """Word to id. Keys are text; looking a word up as bytes works too, as scripts for the original do."""

    def __getitem__(self, word):
        return super().__getitem__(_text(word))

    def __contains__(self, word):
        return super().__contains__(_text(word))

    def get(self, word, default=None):
        """The id of a word given as text or bytes, or ``default``."""
        return super().get(_text(word), default)


def vocabulary_of(counts, cutoff):
    """Number the words seen more than ``cutoff`` times: frequent first, then by spelling; last ``<unk>``."""
    kept = [(word, count) for word, count in counts.items() if count > cutoff and word != UNKNOWN]
    kept.sort(key=lambda pair: (-pair[1], pair[0]))
    words = [word for word, _ in kept] + [UNKNOWN]
    return Vocabulary(zip(words, range(len(words))))


def decode(word):
    """Bytes of a data file as text, whatever they are: undecodable ones survive as escapes."""
    return word.decode("utf-8", "surrogateescape")


def made_up_words(count, seed):
    """``count`` different pronounceable words, the same for the same seed."""
    rng = np.random.default_rng([seed, count])
    words = {}
    while len(words) < count:
        syllables = rng.integers(2, 4)
        letters = ("bdfgklmnprstvz"[c] + "aeiou"[v] for c, v in rng.integers(0, [14, 5], (syllables, 2)))
        words["".join(letters)] = None
    return list(words)


def _text(word):
    return decode(word) if isinstance(word, bytes) else word
