"""Where shuffling takes its randomness from.

With ``FLEET_MPI_SEED`` set, as it is in every job of several processes, every pass of every worker has an order of
its own, the same in every run. Otherwise it is Python's own ``random`` module or numpy's, as in the original, so that a
script's ``random.seed`` and ``np.random.seed`` work.
"""

import random

import numpy as np

from fleet_mpi import settings
from fleet_mpi.ranks import cluster


def random_of_pass(number):
    """The random source of one pass over the data; ``number`` counts the passes of the caller."""
    seed = settings.get("FLEET_MPI_SEED")
    return random.Random(f"{seed}:{number}{_of_worker()}") if seed else random


def generator_of_pass(number):
    """As ``random_of_pass``, with numpy's methods."""
    source = random_of_pass(number)
    return np.random if source is random else np.random.RandomState(source.getrandbits(32))


def _of_worker():
    """What tells workers apart: they share the job's seed, but in the same order they would all do the same."""
    job = cluster.current()
    return f":{job.index}" if job is not None and job.index else ""
