"""What the loss, the stall or the leave of a rank leads to, and what a signal does: one object, read once.

Whoever finds a rank gone, or gets a signal, asks the policy that it was made with. The default is what fleet_mpi
does unless it is told otherwise. A loss and a stall end the job and nothing else: to go on without a worker, servers
would have to agree on its last push. That outcome is to be built here.
"""

import enum
from dataclasses import dataclass
from signal import SIGTERM, SIGUSR1, Signals

from fleet_mpi.errors import NotBuilt, Preempted


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

    def __post_init__(self) -> None:
        for what, built in _BUILT.items():
            outcome = getattr(self, what)
            if outcome not in built:
                raise NotBuilt(f"policy: {what}={outcome.name} is not built; expected "
                               f"{' or '.join(one.name for one in built)}")


_BUILT = {"loss": (Outcome.END_JOB,), "stall": (Outcome.END_JOB,), "leave": (Outcome.GO_ON, Outcome.END_JOB),
          "signal": (Outcome.SAVE_AND_END, Outcome.END_JOB)}
DEFAULT = Policy()
