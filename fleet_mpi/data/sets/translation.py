"""What the translation sets share: samples of sentence pairs, and made-up pairs for their stand-ins.

A sample is (source ids between start and end mark, target ids behind the start mark, target ids before the end mark).
"""

import functools

import numpy as np

from fleet_mpi.data.sets.words import decode, made_up_words

START, END, UNKNOWN = MARKS = ("<s>", "<e>", "<unk>")

_WORDS = 300
_COUNTS = {"train": 3000, "test": 300, "gen": 50, "val": 300}


def pairs_of(lines):
    """The two texts of each line with one tab between them; other lines are passed over."""
    for line in lines:
        fields = (decode(line) if isinstance(line, bytes) else line).strip().split("\t")
        if len(fields) == 2:
            yield fields


def numbered(words):
    """Word to id, from 0 up."""
    return {word: number for number, word in enumerate(words)}


def turned(dictionary):
    """Id to word."""
    return {number: word for word, number in dictionary.items()}


def sample_of(source, target, source_ids, target_ids):
    """The sample of a pair of texts; unknown words have the id of ``<unk>``, the third of a dictionary."""
    unknown = MARKS.index(UNKNOWN)
    words = [source_ids.get(word, unknown) for word in (START, *source.split(), END)]
    wanted = [target_ids.get(word, unknown) for word in target.split()]
    return words, [target_ids[START], *wanted], [*wanted, target_ids[END]]


@functools.lru_cache(maxsize=1)
def made_up_vocabularies():
    """The words of both made-up languages, frequent ones first; word n of one is translated by word n of the other."""
    words = made_up_words(2 * _WORDS, 21)
    return words[:_WORDS], words[_WORDS:]


def made_up_lines(part):
    """Lines of sentence pairs: word by word, but a word of the rarer half changes places with the one before it."""
    source, target = made_up_vocabularies()
    frequency = 1.0 / np.arange(3, _WORDS + 3)
    frequency /= frequency.sum()
    rng = np.random.default_rng([23, *part.encode()])
    for _ in range(_COUNTS[part]):
        chosen = rng.choice(_WORDS, rng.integers(3, 12), p=frequency).tolist()
        yield " ".join(source[n] for n in chosen) + "\t" + " ".join(target[n] for n in _in_target_order(chosen))


def _in_target_order(numbers):
    order = list(numbers)
    for place in range(1, len(order)):
        if order[place] >= _WORDS // 2 > order[place - 1]:
            order[place - 1:place + 1] = order[place], order[place - 1]
    return order
