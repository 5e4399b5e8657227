"""Seeds: from a program's seed, an op's output name and the run count to random numbers; and how these go on
elsewhere."""

import functools
import hashlib
import os

from fleet_mpi import settings
from fleet_mpi.kernels.reference.random import key_of


def job_seed():
    """The seed that stands for 0: FLEET_MPI_SEED, or a fresh one for this process."""
    return settings.get("FLEET_MPI_SEED") or _fresh_seed()


@functools.cache
def _fresh_seed():
    return int.from_bytes(os.urandom(7), "little") + 1


def program_seed(program):
    """What a program draws from: its own seed, that of the job whose training it resumes, or this job's."""
    return program.random_seed or program._resumed_seed or job_seed()


def op_key(call, seed=0):
    """The 64-bit key of one op: from (its own, the program's or the job's seed, its first output's name)."""
    return key_of(seed or program_seed(call.program), random_name(call.op))


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


def runs_of(program, scope):
    """How many runs a program has behind it in a scope, those before a resume included."""
    counts = [made.clock.step for made in program._compiled if made.scope is scope]
    return max(counts, default=program._runs_before.get(scope, 0))


def resume(program, scope, runs, seed=0):
    """Let a program draw on in a scope as after so many runs of a job that had this seed (0: the program has its
    own)."""
    program._runs_before[scope] = runs
    for made in program._compiled:
        if made.scope is scope:
            made.clock.step = runs
    if seed != program._resumed_seed:
        program._resumed_seed = seed
        program.touch()  # plans have the old seed


def identity(program):
    """What tells programs with the same random numbers from others: parameters, ops that draw, whether it trains.

    It stays the same when a program is spread over servers or workers.
    """
    ops = [op for block in program.blocks for op in block.ops]
    words = [[param.name, list(param.shape)] for param in program.all_parameters()]
    words += [[op.type, random_name(op), bool(op.attrs.get("is_test"))] for op in ops if "seed" in op.attrs]
    return hashlib.sha256(repr([words, any(op.trains for op in ops)]).encode()).hexdigest()[:32]
