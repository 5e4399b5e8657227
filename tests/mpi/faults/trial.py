"""One fault as data: what fails, in which rank, when, in which kind of job; and how a seed draws it.

Knows the axes and which of their combinations make sense; nothing of what must follow from them.
"""

import random
from typing import NamedTuple

# What happens to the rank. Each is done by the rank itself at the exact place, where it can be.
SIGNALS = ("stop", "kill", "term")
LEAVING = ("raise", "sys.exit(3)", "sys.exit(0)")
VANISHING = ("os._exit(0)", "os._exit(7)")
FAULTS = SIGNALS + LEAVING + VANISHING
# When, in the order of a rank's life. "in init": while the rank waits in MPI_Init, and others have not come to it;
# "init": just before it enters; likewise for MPI_Finalize. "alone": all other workers have left.
PHASES = ("start", "imports", "init", "in init", "first step", "step", "save", "alone", "end", "finalize",
          "in finalize")
BEFORE_JOINING = ("start", "imports", "init", "in init")
SERVED = ("sync", "async", "half_async", "geo", "delay_compensated", "bounded_staleness")
COLLECTIVE = ("exact", "fast")
MODES = SERVED + COLLECTIVE
# With "roles" our launcher is told the number of servers and workers, with "-np" the number of ranks.
LAUNCHERS = ("mpirun", "fleetrun -np", "fleetrun roles")
# What trains: a script written for Paddle; one of fleet_mpi.join with parameters, or with a table that grows too.
DOORS = ("paddle", "arrays", "growing")
SIZES = ((1, 2), (2, 2), (1, 3))  # servers, workers
EQUALS = 3                        # ranks of a collective job
ROLES = ("server", "first worker", "last worker", "launcher")
AXES = {"fault": FAULTS, "role": ROLES, "phase": PHASES, "mode": MODES, "launcher": LAUNCHERS, "door": DOORS}
ENDLESS = 1_000_000


class Trial(NamedTuple):
    """One fault; ``servers`` is 0 in collective jobs. ``step`` is where it happens in the phases "step" and "save"."""

    number: int
    fault: str
    role: str
    phase: str
    mode: str
    launcher: str
    servers: int
    workers: int
    step: int
    door: str = "paddle"

    @property
    def rank(self):
        """The rank that fails (of "launcher": whose coming to the phase is the moment): servers are the first ranks."""
        if self.role == "server":
            return self.number % self.servers
        return self.servers + (self.workers - 1 if self.role == "last worker" else 0)

    @property
    def name(self):
        """What the rank is called once it has joined."""
        return f"server {self.rank}" if self.role == "server" else f"worker {self.rank - self.servers}"

    @property
    def ranks(self):
        """How many there are."""
        return self.servers + self.workers

    @property
    def steps(self):
        """How many steps workers train: without end where the fault must end the job."""
        leaves = self.fault == "sys.exit(0)" and self.role != "server"  # as a worker without data does
        ends = leaves or self.phase in ("end", "finalize", "in finalize")
        return self.step + 20 if ends else ENDLESS


def draw(seed, number, mode=None):
    """The trial of this number: the same for a seed, however many are drawn."""
    source = random.Random(f"{seed}/{number}")
    while True:
        servers, workers = source.choice(SIZES)
        drawn = Trial(number, source.choice(FAULTS), source.choice(ROLES), source.choice(PHASES),
                      source.choice(MODES) if mode is None else mode, source.choice(LAUNCHERS), servers, workers,
                      source.randrange(2, 40))
        if drawn.mode in COLLECTIVE:
            drawn = drawn._replace(servers=0, workers=EQUALS)
        # One in four launchers would be too many, and a launcher has fewer ways to fail.
        if makes_sense(drawn) and (drawn.role != "launcher" or source.random() < 0.5):
            # Drawn last: what else a seed draws is what it drew before there were other doors than Paddle's.
            return drawn._replace(door=source.choice([door for door in DOORS if has_door(drawn, door)]))


def has_door(trial, door):
    """Whether such a job can be had through this door: tables that grow need rules on servers."""
    return door != "growing" or trial.mode != "geo" and trial.mode not in COLLECTIVE


def makes_sense(trial):
    """Whether there is such a fault."""
    if trial.role == "launcher":
        return (trial.launcher != "mpirun" and trial.fault in ("kill", "term")
                and trial.phase in ("imports", "in init", "step", "save"))
    if trial.role == "server" and (trial.mode in COLLECTIVE or trial.phase == "alone"):
        return False
    if trial.phase == "alone" and trial.mode in COLLECTIVE:
        return False  # all workers make the same number of steps there
    if trial.phase.startswith("in "):
        return trial.fault in SIGNALS  # no Python code runs there
    if trial.phase == "finalize":
        return trial.fault in SIGNALS + VANISHING  # it is too late to raise
    return True
