"""Which ids a batch of ``benchmarks.sparse`` has: drawn uniformly or by Zipf, from so many rows. Knows no table."""

from typing import NamedTuple

import numpy as np

BATCH = 106_496
ZIPF = 1.05
SCATTER = 2_654_435_761   # a prime, so that every place has its own


class Batch(NamedTuple):
    """Ids, the places in a plain table of the same rows, and the ids with every one once."""

    ids: np.ndarray
    places: np.ndarray | None
    merged: np.ndarray


def drawn(draw, rows, count):
    """Batches of ids that are all stored."""
    rng = np.random.default_rng(4)
    order = rng.permutation(rows)   # the most frequent are anywhere in the table
    places = [order[draw(rng, rows)] for _ in range(count)]
    return [Batch(ids_of(one), one, ids_of(once(one))) for one in places]


def scattered(places, rows):
    """The same places in another order, without one as long as all rows."""
    return places * SCATTER % rows


def uniform(rng, rows):
    """Row numbers, all alike."""
    return rng.integers(0, rows, BATCH)


def zipf(rng, rows):
    """Row numbers, number r about as frequent as (r + 1) ** -1.05."""
    share = rng.random(BATCH)
    return np.minimum(((1 - share) + share * rows ** (1 - ZIPF)) ** (1 / (1 - ZIPF)), rows).astype(np.int64) - 1


DRAWS = {"uniform": uniform, f"Zipf {ZIPF}": zipf}


def ids_of(places):
    """Any 64-bit numbers, another for each place."""
    return (places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def once(numbers):
    """Each once, in order of occurrence, as a merge leaves them."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]
