"""The data of wide_and_deep's first version: random id lists and random labels.

There is nothing to learn in it (the loss ends near ln 2): it shows that a sparse model runs.
"""

import itertools

from fleet_mpi.data.seeding import random_of_pass

LARGEST_ID = 10 ** 10


def data_reader(count=1000):
    """A reader of ``count`` samples ([16 deep ids], [8 wide ids], [label 0 or 1]); see ``seeding``."""
    passes = itertools.count()

    def read_random():
        source = random_of_pass(next(passes))
        for _ in range(count):
            deep, wide = ([source.randint(0, LARGEST_ID) for _ in range(length)] for length in (16, 8))
            yield deep, wide, [source.randint(0, 1)]

    return read_random
