"""Tests that start real MPI ranks, and how to add one.

Inside-test (every rank runs its body; files in tests/mpi/inside, run with 2, 3, 4 and 5 ranks)::

    @pytest.mark.mpi(min_size=3, max_size=4)     # both limits may be left out
    def test_ranks_meet(mpi_tmp_path):           # the folder of rank 0, the same on every rank
        from mpi4py import MPI
        assert MPI.COMM_WORLD.allgather(1) == [1] * MPI.COMM_WORLD.size

Job-test (a whole script under mpirun or under our launcher; any file tests/mpi/test_*.py)::

    def test_a_script_ends(tmp_path):
        ended = run_job(4, ["train.py", "--epochs", "1"], cwd=tmp_path)          # python train.py, 4 ranks
        assert ended.code == 0, ended.story()    # every rank's last words
        assert ended.ranks[0].out == "done\n"    # what rank 0 alone wrote

Plain ``pytest`` runs both. While writing an inside-test: ``python -m tests.mpi.jobs 3 -k ranks_meet``.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.launch.mpirun import environment, find_mpirun, options
from fleet_mpi.launch.running import Ending
from fleet_mpi.launch.starting import STARTS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSIDE = HERE / "inside"
# Every rank writes into files of its own: nothing is lost when a job is ended, whatever its mpirun does with output.
OWN_FILES = ('rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec >"$TEST_JOB/out.$rank" 2>"$TEST_JOB/err.$rank"; exec "$@"')
KEPT_LINES = 40
# A launcher's traces in the environment would make a job think that it is part of another one.
FOREIGN = ("OMPI_COMM_", "OMPI_UNIVERSE", "PMI_", "PMIX_", "MPI_LOCAL", "PADDLE_", "TRAINING_ROLE", "FLEET_MPI_LAUNCH",
           "FLAGS_selected_gpus", "PYTEST_")


class Rank(NamedTuple):
    """What one rank wrote."""

    out: str
    err: str


class Finished(NamedTuple):
    """A job that ended: ``code`` of its mpirun or launcher (None: ended at the deadline), and what was written.

    ``out`` and ``err`` are those of all ranks in rank order, then the launcher's own. ``ranks`` is empty with
    via="launch" or "command": there the ranks' output passes through the launcher.
    """

    code: "int | None"
    out: str
    err: str
    seconds: float
    ranks: tuple
    launcher: Rank

    def story(self):
        """How it ended, and the last lines of every rank: the message of a failed assertion."""
        ended = "still running at the deadline, ended" if self.code is None else f"exit code {self.code}"
        parts = [f"{ended}, after {self.seconds:.1f} s"]
        named = {f"rank {number}": rank for number, rank in enumerate(self.ranks)}
        for name, wrote in {**named, "launcher": self.launcher}.items():
            for stream, text in wrote._asdict().items():
                if text.strip():
                    parts.append(f"---- {name}, std{stream}: last lines\n{_last_words(text)}")
        return "\n".join(parts)


def mpirun():
    """The mpirun of this interpreter; the test is skipped where there is none."""
    try:
        return find_mpirun()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


def run_job(n, argv, env=None, timeout=60, mpmd=None, via="mpirun", cwd=None, python=(sys.executable,)):
    """Run ``python argv`` on ``n`` ranks and wait for its end, at most ``timeout`` seconds.

    via="launch": by ``python -m fleet_mpi.launch -np n argv``; via="command": just ``python argv``, which starts its
    own ranks. mpmd: further (ranks, argv, environment) groups of the same job, after the first; all groups see ``env``.
    """
    found = mpirun()
    folder = tempfile.mkdtemp(prefix="mpi-job-")
    try:
        surroundings = {**clean_environment(), **(env or {}), "TEST_JOB": folder}
        if via == "launch":
            command, total = [*python, "-m", "fleet_mpi.launch", "-np", str(n), *map(str, argv)], 0
        elif via == "command":
            command, total = [*python, *map(str, argv)], 0
        else:
            groups = [(n, argv, {}), *(mpmd or ())]
            total = sum(ranks for ranks, *_ in groups)
            command = [found.path, *options(found.family, total, os.cpu_count()), *_groups(groups, python)]
            surroundings.update(environment(found.family, surroundings, session=folder))
        started = time.monotonic()
        where = cwd or (folder if via == "launch" else None)  # the launcher keeps logs in its folder
        code, out, err = _run_until_it_begins(command, surroundings, where, timeout)
        ranks = tuple(Rank(_read(folder, "out", number), _read(folder, "err", number)) for number in range(total))
        return Finished(code, "".join(rank.out for rank in ranks) + out, "".join(rank.err for rank in ranks) + err,
                        time.monotonic() - started, ranks, Rank(out, err))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_inside(n, arguments=(), timeout=300, per_test=60, folder=INSIDE, env=None):
    """Run the inside-tests on ``n`` ranks: pytest in every rank, in step. A deadlock ends with every rank's stack."""
    words = ["-m", "pytest", "--with-mpi", "-v", "-s", "-p", "no:cacheprovider",
             "-o", f"faulthandler_timeout={per_test}", "-o", "faulthandler_exit_on_timeout=true",
             *arguments, str(folder)]
    return run_job(n, words, timeout=timeout, cwd=ROOT, env=env)


def clean_environment():
    """This process's environment without the traces of a launcher; the checkout is found from any folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    kept["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    # Python's own buffer would keep the last words of a rank that is killed.
    return {**kept, "PYTHONUNBUFFERED": "1"}


def _groups(groups, python):
    words = []
    for ranks, argv, environ in groups:
        setting = ["env", *(f"{name}={value}" for name, value in environ.items())] if environ else []
        words += [":"] if words else []
        words += ["-np", str(ranks), "sh", "-c", OWN_FILES, "sh", *setting, *python, *map(str, argv)]
    return words


def _run_until_it_begins(command, environ, cwd, timeout):
    """As ``_run``, again (twice at most) where Open MPI's mpirun fails before it has started a rank."""
    for again in range(1, STARTS + 1):
        ended = _run(command, environ, cwd, timeout)
        if again == STARTS or not Ending(ended[0], boxes=ended[2]).has_not_begun:
            return ended
        print(f"mpirun could not start, before it started any rank: starting it again ({again} of {STARTS - 1})")


def _run(command, environ, cwd, timeout):
    """Exit code (None at the deadline), stdout and stderr. The job is a process group, and ends as one."""
    job = subprocess.Popen(command, env=environ, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        out, err = job.communicate(timeout=timeout)
        return job.returncode, out, err
    except subprocess.TimeoutExpired:
        return None, *_end(job)
    finally:
        if job.poll() is None:
            _end(job)


def _end(job):
    """mpirun ends its ranks when asked to, wherever they are; the group is killed if it does not within seconds."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(job.pid, number)
            return job.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            continue
    return "", ""


def _last_words(text):
    """The end of a text, without pytest's own frames in a stack and what pytest-mpi tells of the library."""
    lines = [line for line in text.splitlines() if "/site-packages/_pytest/" not in line and "/pluggy/" not in line
             and not line.startswith(("MPI ", "MPICH ", "mpi4py "))]
    return "\n".join(lines[-KEPT_LINES:])


def _read(folder, kind, rank):
    path = Path(folder, f"{kind}.{rank}")
    return path.read_text(errors="replace") if path.exists() else ""


if __name__ == "__main__":
    finished = run_inside(int(sys.argv[1]), sys.argv[2:])
    print(finished.story())
    sys.exit(finished.code)
