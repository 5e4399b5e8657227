"""Distinct whole numbers from random words: draws without replacement, as many words as numbers, none rejected.

Column j's number i is word[i, j] scaled to how many are left, counted through those that are: every order of every
choice is as likely as any other.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def distinct_numbers(words, below, out):
    """Fill each column of ``out``, int64, with distinct numbers of [0, below), by uint32 ``words`` of its shape."""
    xp = module_of(words)
    for i in range(out.shape[0]):
        number = (words[i].astype("uint64") * (below - i) >> 32).astype("int64")
        taken = xp.sort(out[:i], axis=0)  # ascending: each that is not above moves the number on by one
        for j in range(i):
            number = number + (number >= taken[j])
        out[i] = number
