"""Reviews of made-up words for the stand-ins of ``imdb`` and ``sentiment``.

Common words are mixed with words that good or bad reviews prefer; no single word decides.
"""

import functools

import numpy as np

from fleet_mpi.data.sets.words import made_up_words


def reviews(mood, count, seed):
    """Yield the words of ``count`` reviews of a mood, "pos" or "neg"; the same for the same seed."""
    common, frequency, telling = _vocabulary()
    rng = np.random.default_rng(seed)
    for _ in range(count):
        words = rng.choice(common, rng.integers(20, 100), p=frequency)
        told = rng.random(len(words)) < 0.15
        # One in five of the telling words is of the other mood.
        own = rng.choice(telling[mood], len(words))
        other = rng.choice(telling["neg" if mood == "pos" else "pos"], len(words))
        yield np.where(told, np.where(rng.random(len(words)) < 0.8, own, other), words).tolist()


@functools.lru_cache(maxsize=1)
def _vocabulary():
    """(common words, how often each comes, words of each mood)."""
    words = np.array(made_up_words(480, 7), dtype=object)
    # Frequencies as in real text: the n-th word comes about 1/n as often as the first.
    frequency = 1.0 / np.arange(1, 401)
    return words[:400], frequency / frequency.sum(), {"pos": words[400:440], "neg": words[440:]}
