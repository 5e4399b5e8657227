"""Seeds: from a program's seed, an op's output name and the run count to random numbers."""

import functools
import os

from fleet_mpi import settings
from fleet_mpi.kernels.random import key_of


def job_seed():
    """The seed that stands for 0: FLEET_MPI_SEED, or a fresh one for this process."""
    return settings.get("FLEET_MPI_SEED") or _fresh_seed()


@functools.lru_cache(maxsize=None)
def _fresh_seed():
    return int.from_bytes(os.urandom(7), "little") + 1


def op_key(call, seed=0):
    """The 64-bit key of one op: from (its own, the program's or the job's seed, its first output's name)."""
    seed = seed or call.program.random_seed or job_seed()
    return key_of(seed, random_name(call.op))


def random_name(op):
    """What an op's numbers are drawn by: its first output, or for a recomputed op that of the original."""
    return op.attrs.get("random_name") or op.output_arg_names[0]


def op_stream(call, seed=0):
    """A function that gives the stream to draw from at each run.

    A persistable variable with a fixed seed is drawn the same at every run, all else moves on with the run count.
    Workers draw apart, but for persistable variables: initial values are the same on all of them.
    """
    var, clock = call.op.block.find_var(call.op.output_arg_names[0]), call.clock
    if var is None or not var.persistable:
        return lambda: clock.stream
    return (lambda: 0) if seed or call.program.random_seed else (lambda: clock.step)
