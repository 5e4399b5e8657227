"""Faults that the harness judges: some that are chosen, some that ``python -m tests.mpi.faults --seed suite`` draws."""

import pytest

from tests.mpi.faults import report, run
from tests.mpi.faults.trial import AXES, Trial, draw
from tests.mpi.jobs import mpirun

SEED = "suite"
DEADLINE_S = 4.0
# Of those drawn, a few in which everything is there that can be drawn: all faults, phases, roles, modes and launchers.
DRAWN = [draw(SEED, number) for number in (4, 23, 26, 27, 28, 35, 65, 85, 168, 220, 232, 283, 290, 302, 354, 449)]
# Under plain mpirun nobody but the ranks' own watcher can say who has vanished from the middle of training.
CHOSEN = [Trial(1, "kill", "server", "step", "sync", "mpirun", 1, 2, 5),
          Trial(2, "kill", "first worker", "step", "sync", "mpirun", 1, 2, 3),
          Trial(3, "os._exit(0)", "first worker", "step", "sync", "mpirun", 1, 2, 3),
          Trial(4, "os._exit(0)", "last worker", "step", "exact", "mpirun", 0, 3, 3),
          # Moments in which the others wait within MPI.
          Trial(5, "sys.exit(0)", "first worker", "init", "exact", "mpirun", 0, 3, 3),
          Trial(6, "raise", "server", "init", "async", "fleetrun -np", 1, 2, 3),
          Trial(7, "os._exit(0)", "server", "finalize", "bounded_staleness", "fleetrun roles", 1, 2, 3),
          Trial(8, "kill", "last worker", "finalize", "half_async", "mpirun", 1, 3, 3),
          # The same judge for jobs of fleet_mpi.join, with tables that grow: in steps, and in a save that all call.
          Trial(9, "kill", "server", "step", "geo", "fleetrun -np", 1, 2, 5, "arrays"),
          Trial(10, "stop", "first worker", "step", "async", "mpirun", 1, 2, 5, "growing"),
          Trial(11, "raise", "last worker", "save", "sync", "fleetrun roles", 1, 2, 5, "growing")]


@pytest.mark.parametrize("trial", CHOSEN + DRAWN, ids=lambda trial: " ".join((*trial[1:6], trial.door)))
def test_a_fault_ends_the_job_with_its_code_its_rank_and_nothing_left(trial):
    mpirun()
    result = run.run(trial, DEADLINE_S)
    assert not result.wrong, f"\n{report.header()}\n{report.row(result)}\n{result.words}"


def test_every_kind_of_fault_is_among_them():
    for axis, values in AXES.items():
        assert {getattr(trial, axis) for trial in DRAWN} == set(values), axis
