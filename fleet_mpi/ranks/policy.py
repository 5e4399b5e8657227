"""What the loss, the stall or the leave of a rank leads to, and what a signal does: one object, read once.

Whoever finds a rank lost, late or gone asks the policy that it was made with, and ends the job, or goes on as if the
rank had left in order. The default is what fleet_mpi does unless it is told otherwise.
"""

import enum
from dataclasses import dataclass
from signal import SIGTERM, SIGUSR1, Signals

from fleet_mpi.errors import Preempted


class Outcome(enum.Enum):
    """What happens next."""

    END_JOB = "all ranks end, with the exit code of the error"
    GO_ON = "the others go on; the rank counts as one that has left"
    SAVE_AND_END = "the workers agree on a step, save, and all ranks end with the policy's exit code"

    @property
    def ends_job(self) -> bool:
        """Whether the rank that finds it raises."""
        return self is Outcome.END_JOB


@dataclass(frozen=True)
class Policy:
    """One outcome for each of the four.

    A *loss*: a rank failed, or has ended while others need it. A *stall*: others have waited for a worker for the
    deadline. A *leave*: a worker has said goodbye to its servers. A *signal*: one of ``signals`` came to a process
    that watches for them.
    """

    loss: Outcome = Outcome.END_JOB
    stall: Outcome = Outcome.END_JOB
    leave: Outcome = Outcome.GO_ON
    signal: Outcome = Outcome.SAVE_AND_END
    # USR1 reaches the ranks through every mpirun; TERM where the launcher gives them time.
    signals: tuple[Signals, ...] = (SIGUSR1, SIGTERM)
    exit_code: int = Preempted.exit_code   # after a signal: the batch script requeues the job


DEFAULT = Policy()
