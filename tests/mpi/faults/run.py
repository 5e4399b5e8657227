"""Runs one trial: starts the job, waits for its end, at most so long, and looks at what is left of it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from fleet_mpi.launch.mpirun import environment, find_mpirun, options
from tests.mpi.faults import naming, traces
from tests.mpi.faults.expected import IF_KNOWN, NOBODY, ROLE, expected, optional_name
from tests.mpi.faults.trial import COLLECTIVE
from tests.mpi.jobs import ROOT, clean_environment

HERE = Path(__file__).resolve().parent
SCRIPT = str(HERE / "script.py")
SCRIPTS = {"paddle": SCRIPT, **dict.fromkeys(("arrays", "growing"), str(HERE / "array_script.py"))}
SIGNALS = {"stop": signal.SIGSTOP, "kill": signal.SIGKILL, "term": signal.SIGTERM}
_STARTS_S = 90         # until the fault: a busy machine needs half of it for imports
_HANGS_S = 25          # after the fault and the deadline
_LOOKING_S = 0.02
_WITHIN_S = 0.3        # from the door of an MPI call until the rank is well within
_KEPT_LINES = 60


def told(**what):
    """The variables that tell ``script.py`` what is to fail, and let it find what does."""
    return {**{f"FAULTS_{name}": str(value) for name, value in what.items()},
            "PYTHONPATH": os.pathsep.join([str(HERE / "hooks"), str(ROOT)])}


class Result(NamedTuple):
    """How a trial went. ``wrong`` is a list of short causes, empty if all was as it must be."""

    trial: tuple
    ended: bool
    seconds: "float | None"   # from the fault to the end
    code: "int | None"
    named: str
    processes: list
    segments: "list | None"   # None: not looked at
    files: list
    wrong: list
    words: str                # what was written, and where ranks hung


class Job:
    """A running trial."""

    def __init__(self, trial, deadline_s):
        self.trial, self.deadline_s = trial, deadline_s
        self.folder = tempfile.mkdtemp(prefix="flt-")  # short: sockets lie in it, whose names may have 108 bytes
        for name in ("t", "cwd"):
            os.mkdir(os.path.join(self.folder, name))
        self.output = {name: open(os.path.join(self.folder, name), "w+") for name in ("out", "err")}
        found = find_mpirun()
        surroundings = {**clean_environment(), **self._variables()}
        surroundings.update(environment(found.family, surroundings) if trial.launcher == "mpirun" else {})
        self.started = time.time()
        self.process = subprocess.Popen(
            traces.with_own_segments(self._command(found)), env=surroundings, cwd=os.path.join(self.folder, "cwd"),
            stdin=subprocess.DEVNULL, stdout=self.output["out"], stderr=self.output["err"], start_new_session=True)
        self.segments, self.hung = None, ""

    def _variables(self):
        trial = self.trial
        variables = told(JOB=self.folder, RANK=trial.rank, PHASE=trial.phase, FAULT=trial.fault, STEP=trial.step,
                         STEPS=trial.steps, MODE=trial.mode, ROLE=trial.role, DOOR=trial.door)
        variables.update({"TMPDIR": os.path.join(self.folder, "t"),
                          "FLAGS_rpc_deadline": str(int(self.deadline_s * 1000))})
        if trial.mode in COLLECTIVE:
            return {**variables, "FLEET_MPI_ALLREDUCE": trial.mode}
        return {**variables, "FLEET_MPI_SERVERS": str(trial.servers)}

    def _command(self, found):
        trial, script = self.trial, SCRIPTS[self.trial.door]
        if trial.launcher == "mpirun":
            return [found.path, *options(found.family, trial.ranks, os.cpu_count()), "-np", str(trial.ranks),
                    sys.executable, script]
        launcher = [sys.executable, "-m", "fleet_mpi.launch"]
        if trial.launcher == "fleetrun -np":
            return [*launcher, "-np", str(trial.ranks), script]
        if trial.mode in COLLECTIVE:
            return [*launcher, "--nproc_per_node", str(trial.workers), script]
        return [*launcher, "--server_num", str(trial.servers), "--worker_num", str(trial.workers), script]

    def wait(self):
        """Wait for the end; returns (whether it ended by itself, seconds from the fault)."""
        while self.process.poll() is None:
            if self.segments is None:
                self.segments = traces.open_segments(self.folder, self.process)
            self._do_what_is_wanted()
            if time.time() > self._latest_end():
                self.hung = self._stacks()
                traces.end(self.folder)
                self.process.wait()
                return False, None
            time.sleep(_LOOKING_S)
        failed_at = self.failed_at()
        return True, None if failed_at is None else time.time() - failed_at

    def failed_at(self):
        """When the fault happened; None before."""
        path = Path(self.folder, "at")
        return float(path.read_text()) if path.exists() else None

    def _latest_end(self):
        failed_at = self.failed_at()
        return self.started + _STARTS_S if failed_at is None else failed_at + self.deadline_s + _HANGS_S

    def _do_what_is_wanted(self):
        """Send the signal that a rank cannot send to itself: it is within an MPI call, or the launcher is meant."""
        wanted = Path(self.folder, "wanted")
        if not wanted.exists():
            return
        whom = wanted.read_text()
        wanted.unlink()
        if self.trial.phase.startswith("in "):
            time.sleep(_WITHIN_S)
        now = time.time()
        os.kill(self.process.pid if whom == "launcher" else int(whom), SIGNALS[self.trial.fault])
        Path(self.folder, "part").write_text(repr(now))
        os.replace(Path(self.folder, "part"), Path(self.folder, "at"))

    def _stacks(self):
        """Where every process of the job is, in Python and in the kernel."""
        found = traces.processes(self.folder)
        parts = [f"process {number}, rank {traces.rank_of(number) or '-'}: {traces.describe(number)}: {command[:160]}"
                 for number, command in found.items()]
        for number in found:
            if traces.catches(number, signal.SIGUSR2) and traces.rank_of(number):
                os.kill(number, signal.SIGUSR2)
        time.sleep(1)
        parts += [f"---- Python stack of {path.name}\n{path.read_text()}"
                  for path in sorted(Path(self.folder).glob("stack.*"))
                  if path.stat().st_size]
        return "\n".join(parts)

    def words(self):
        """All that was written: by the launcher, and by ranks into their logs."""
        parts = []
        for name, file in self.output.items():
            file.seek(0)
            parts.append((f"std{name}", file.read()))
        for path in sorted(Path(self.folder, "cwd").rglob("*log.*")):
            parts.append((path.name, path.read_text(errors="replace")))
        return parts

    def close(self):
        """End what is left, and remove all of it."""
        traces.end(self.folder)
        self.process.wait()
        for file in self.output.values():
            file.close()
        if self.segments is not None:
            os.close(self.segments)
        shutil.rmtree(self.folder, ignore_errors=True)


def run(trial, deadline_s):
    """Run the trial; returns its Result."""
    job = Job(trial, deadline_s)
    try:
        ended, seconds = job.wait()
        processes = traces.left(job.folder) if ended else {}
        segments = None if job.segments is None else os.listdir(job.segments)
        files = [str(path.relative_to(job.folder)) for path in sorted(Path(job.folder, "t").rglob("*"))]
        words = job.words()
        code = job.process.returncode if ended else None
        shown = "\n".join(text for name, text in words if name in ("stdout", "stderr"))
        seen = naming.blame(shown if ended else "", trial.rank, trial.name)
        named, wrong = judge(trial, deadline_s, ended, seconds, code, seen, job.failed_at())
        if ended:
            wrong += [f"{len(what)} {kind} left" for what, kind in
                      ((processes, "processes"), (segments, "segments"), (files, "files")) if what]
        text = "\n".join(f"---- {name}\n{_last(text)}" for name, text in words if text.strip()) + f"\n{job.hung}"
        return Result(trial, ended, seconds, code, named, list(processes.values()), segments, files, wrong, text)
    finally:
        job.close()


def judge(trial, deadline_s, ended, seconds, code, seen, failed_at):
    """(who was named, what is wrong), without what is left."""
    must = expected(trial, deadline_s)
    named = {naming.RIGHT: "rank and role" if seen.role else "rank"}.get(seen.who, seen.who)
    if failed_at is None:
        return named, [f"ended with {code} before the fault" if ended else "never came to the fault"]
    if not ended:
        return named, ["hangs"]
    wrong = [f"code {code}"] if not must.allows(code) else []
    if seconds > must.within_s:
        wrong.append("late")
    if must.named == NOBODY or optional_name(trial) and code == 0:
        wrong += [f"blames {seen.who}"] if seen.who != naming.NOBODY else []
    elif seen.who != naming.RIGHT and (must.named, seen.who) != (IF_KNOWN, naming.NOBODY):
        wrong.append({naming.NOBODY: "nobody named", naming.SEVERAL: "others named too",
                      naming.WRONG: "wrong rank named"}[seen.who])
    elif must.named == ROLE and not seen.role:
        wrong.append("role not named")
    return named, wrong


def _last(text):
    return "\n".join(text.splitlines()[-_KEPT_LINES:])
