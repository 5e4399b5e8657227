"""Sentences with roles, for the stand-in of ``conll05``: in the columns of its files.

An active verb has its doer (A0) before it and what it is done to (A1) behind it, a passive verb the other way round;
words for times are AM-TMP wherever they stand.
"""

import functools

import numpy as np

from fleet_mpi.data.sets.words import made_up_words

_NOUNS, _VERBS, _TIMES, _FILLERS, _COUNT = 150, 40, 20, 10, 1500
_ROLES = ("A0", "A1", "AM-TMP", "V")


def dictionaries():
    """Words, verbs and labels to ids; the id of unknown words is 0."""
    words = [word for some in _vocabulary() for word in some]
    labels = [f"{mark}-{role}" for role in _ROLES for mark in "BI"] + ["O"]
    return tuple({text: number for number, text in enumerate(texts)}
                 for texts in (["<unk>", "bos", "eos", *words], list(_vocabulary()[1]), labels))


def sentences():
    """Yield the rows (word, fields) of each sentence: a column for the verb, one for the roles."""
    nouns, verbs, times, fillers = _vocabulary()
    rng = np.random.default_rng(37)
    for _ in range(_COUNT):
        verb = int(rng.integers(_VERBS))
        before, behind = ("A0", "A1") if verb < _VERBS // 2 else ("A1", "A0")
        rows = [(fillers[rng.integers(_FILLERS)], ["-", "*"])] if rng.random() < 0.3 else []
        parts = [(before, nouns, 4), ("V", [verbs[verb]], 2), (behind, nouns, 4)]
        parts.insert(int(rng.choice([0, 3])), ("AM-TMP", times, 3))
        for role, words, longest in parts:
            rows += _phrase(role, words, int(rng.integers(1, longest)), rng)
        yield rows


def _phrase(role, words, length, rng):
    """The rows of a phrase of some words that has one role."""
    chosen = [words[number] for number in rng.integers(0, len(words), length)]
    brackets = ["*"] * length
    brackets[0] = f"({role}*"
    brackets[-1] += ")"
    return [(word, [word if role == "V" else "-", bracket]) for word, bracket in zip(chosen, brackets)]


@functools.lru_cache(maxsize=1)
def _vocabulary():
    """Nouns, verbs, words for times, and others."""
    words = iter(made_up_words(_NOUNS + _VERBS + _TIMES + _FILLERS, 29))
    return tuple([next(words) for _ in range(count)] for count in (_NOUNS, _VERBS, _TIMES, _FILLERS))
