"""fleet_mpi/data/worker_pool.py, worker_process.py and by_value.py: a whole script, whose lines are looked at one by
one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "loading_script.py"
ROOT = SCRIPT.parents[3]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the script prints, by the first words of its lines."""
    ended = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=300,
                           cwd=tmp_path_factory.mktemp("loading"), env={"PYTHONPATH": str(ROOT), "FLEET_MPI_SEED": "4"})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("line", [
    "same True ['-m', 'fleet_mpi.data.worker_process']",
    "anew True",
    "after a break True 1",
    "streams True [[[0, 2, 4, 6]], [[1, 3, 5, 7]], [[8, 10]], [[9]]]",
    "imports {1}",
    "worker 0 of 1 of 9",
    "ended [0, 0, 0]",
    r"KeyError 'no fourth' KeyError: 'no fourth'",
    "left 0",
])
def test_the_script_says_so(printed, line):
    assert line in printed.splitlines(), printed


def test_a_worker_that_dies_or_stalls_is_named(printed):
    assert re.search(r"^EnvironmentProblem DataLoader: worker process 1 of 2 \(pid \d+\) ended with signal 9", printed,
                     re.M)
    assert re.search(r"^Stalled DataLoader: worker process 0 of 2 \(pid \d+\) gave no batch within timeout=1 s",
                     printed, re.M)


def test_the_script_ran_once(printed):
    assert printed.count("same") == 1
