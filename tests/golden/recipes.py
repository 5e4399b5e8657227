"""The list of recipes, and how one is run."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_LONGEST_S = 240  # of one job: the first on a new worktree compiles its kernels


class Recipe(NamedTuple):
    """One way to train. ``servers`` is 0 in collective jobs; ``ranks`` 1: no launcher."""

    name: str
    command: tuple
    ranks: int = 1
    servers: int = 0

    def run(self):
        """{(step, variable): digest}, in the order of the steps."""
        start = [] if self.ranks == 1 else ["-m", "fleet_mpi.launch", "-np", str(self.ranks)]
        # PYTHONPATH: this commit is run, whatever is installed.
        surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "FLEET_MPI_SERVERS": str(self.servers),
                        "FLEET_MPI_ALLREDUCE": "exact"}
        with tempfile.TemporaryDirectory() as folder:  # the launcher leaves logs where it is started
            ended = subprocess.run([sys.executable, *start, str(HERE / self.command[0]), *self.command[1:]], cwd=folder,
                                   env=surroundings, capture_output=True, text=True, timeout=_LONGEST_S)
        found = {(int(step), name): digest for step, name, digest in
                 (line.split()[1:] for line in ended.stdout.splitlines() if line.startswith("golden "))}
        if ended.returncode or not found:
            raise SystemExit(f"{self.name}: ended with code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
        return found


def _served(name, model, rule, servers=2, method="RoundRobin", steps=6, workers=2):
    return Recipe(name, ("script.py", "servers", model, rule, str(steps), method), servers + workers, servers)


def _equal(name, model, rule, workers, steps=4):
    return Recipe(name, ("script.py", "collective", model, rule, str(steps), "-"), workers)


def _alone(name, model, rule, steps):
    return Recipe(name, ("script.py", "alone", model, rule, str(steps), "-"))


RECIPES = (
    *(_served(f"dense, {servers} server{'s' * (servers > 1)}, {method}", "dense", "momentum", servers, method)
      for servers in (1, 2, 3) for method in ("RoundRobin", "HashName")),
    _served("rows, Adam, clip by global norm", "rows", "adam_clipped"),
    _served("schedule", "dense", "scheduled", 3),
    _served("LAMB", "normalised", "lamb", 3),
    _served("wide and deep by rows", "wide_and_deep", "adagrad"),
    Recipe("async", ("turns.py", "async")),
    Recipe("delay compensated", ("turns.py", "delay_compensated")),
    Recipe("geo", ("turns.py", "geo")),
    _equal("collective, 2 workers", "normalised", "momentum", 2),
    _equal("collective, 3 workers", "normalised", "momentum", 3),
    _alone("LeNet", "lenet", "adam_clipped", 4),
    _alone("ResNet-18", "resnet18", "momentum", 2),
)


def timed(recipe):
    """(what it gave, the seconds it took)."""
    began = time.monotonic()
    return recipe.run(), time.monotonic() - began
