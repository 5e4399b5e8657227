"""The judge's table: what must follow from a fault. The promises are README's ("Modes") and design.md's (section 7).

Everything that is looked at is here: exit codes, seconds from the fault to the end, and whether the rank that failed
must be named. That every job ends and leaves nothing behind needs no table.
"""

from typing import NamedTuple

from fleet_mpi.ranks import library
from tests.mpi.faults.trial import BEFORE_JOINING, SERVED, VANISHING

SOON_S = 5.0         # from a fault that a process can see to the end of the job
AFTER_DEADLINE_S = 5.0
IMPORTS_S = 5.0      # the others wait for a rank from when they have come themselves
ANY, NOT_ZERO = "any", "not 0"
NOBODY, IF_KNOWN, RANK, ROLE = "nobody", "rank or nobody", "rank", "rank and role"
ENDS = ("end", "finalize")
LOST, STALLED = 4, 5


class Expected(NamedTuple):
    """What must follow: ``codes`` is a set, ANY or NOT_ZERO; ``named`` is NOBODY, IF_KNOWN, RANK or ROLE."""

    codes: object
    within_s: float
    named: str

    def allows(self, code):
        """Whether a job may end with this code."""
        return self.codes == ANY or (code != 0 if self.codes == NOT_ZERO else code in self.codes)


def expected(trial, deadline_s):
    """The first row of the table that speaks of this trial."""
    for holds, codes, named in _rows(trial):
        if holds:
            return Expected(codes, _seconds(trial, deadline_s), RANK if named == ROLE and _unknown(trial) else named)
    raise LookupError(f"no row for {trial}")


def _rows(trial):
    fault, phase, ours = trial.fault, trial.phase, trial.launcher != "mpirun"
    worker = trial.role != "server"
    return (
        (trial.role == "launcher", {-9} if fault == "kill" else {143}, NOBODY),
        # A script that ends in order has not failed.
        (fault == "sys.exit(0)" and phase in ENDS, {0}, NOBODY),
        (_leaves(trial), {0}, NOBODY),
        (fault == "sys.exit(0)", NOT_ZERO, ROLE),
        # Done, but without MPI_Finalize: an MPI may call that a failure.
        (fault == "os._exit(0)" and phase in ENDS, ANY, ROLE),
        (fault == "stop", {STALLED}, ROLE),
        # Where nothing of this package is loaded yet, only mpirun can know; MPICH's does not tell.
        (fault in ("kill", "term") and _unseen(trial), NOT_ZERO, IF_KNOWN),
        (fault in ("kill", "term"), {LOST} if ours else NOT_ZERO, ROLE),
        (fault == "os._exit(7)", {7, LOST} if ours else NOT_ZERO, ROLE),
        (fault == "os._exit(0)" and phase in ("start", "imports"), NOT_ZERO, RANK),
        # MPICH's mpirun kills the others, and may end with the 0 of the one that left: its code is not ours to say.
        (fault == "os._exit(0)" and not ours and library.beside() != library.OPEN_MPI, ANY, ROLE),
        (fault == "os._exit(0)", {LOST} if ours else NOT_ZERO, ROLE),
        # Before our package is imported, mpirun alone can see a rank end, or the others miss it.
        (fault in ("raise", "sys.exit(3)") and _unseen(trial), NOT_ZERO, RANK),
        (fault == "sys.exit(3)", {3}, ROLE),
        # What a request's handling raises is an error of the request: usage.
        (fault == "raise", {1} if worker or phase in ENDS + BEFORE_JOINING else {1, 2}, ROLE),
    )


def _seconds(trial, deadline_s):
    if _leaves(trial):
        # Nothing has failed: what follows is the training of the others, to its end.
        return deadline_s + AFTER_DEADLINE_S
    begins = trial.phase in ("start", "imports")
    # Who ends with 0 before MPI_Init has not failed, as far as a launcher can see, until the others miss it.
    missed = begins and (trial.fault in ("sys.exit(0)", "os._exit(0)") or _unseen(trial) and trial.fault != "kill")
    if trial.fault == "stop" or missed:
        return deadline_s + AFTER_DEADLINE_S + IMPORTS_S * begins
    return SOON_S


def _leaves(trial):
    """Whether a worker has no more data and leaves; servers end with the last worker. Not from within a save."""
    others_save = trial.phase == "save" and trial.role == "last worker"  # worker 0 does, while this one trains
    return (trial.fault == "sys.exit(0)" and trial.role in ("first worker", "last worker") and trial.mode in SERVED
            and (trial.phase in ("first step", "step", "alone") or others_save))


def _unseen(trial):
    """Whether nothing of this package runs in the rank, nor beside it."""
    return trial.launcher == "mpirun" and trial.phase in ("start", "imports")


def _unknown(trial):
    """Whether nobody can know which role the rank would have had."""
    return trial.phase in BEFORE_JOINING


def optional_name(trial):
    """Whether the rank must be named only if the job is said to have failed."""
    return trial.fault in VANISHING and trial.phase in ENDS
