"""Where shuffling takes its randomness from.

With ``FLEET_MPI_SEED`` set every pass has an order of its own, the same in every run. Otherwise it
is Python's own ``random`` module, as in the original, so that a script's ``random.seed`` works.
"""

import random

from fleet_mpi import settings


def random_of_pass(number):
    """The random source of one pass over the data; ``number`` counts the passes of the caller."""
    seed = settings.get("FLEET_MPI_SEED")
    return random.Random(f"{seed}:{number}") if seed else random
