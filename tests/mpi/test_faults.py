"""The fault matrix: whatever ends, fails or stalls, on either role, at any moment, the job ends, and says why.

Every cell is a job of ``faults/script.py`` (or of a script of its own) with a deadline that is far away, unless it is
about stalls. Rank 0 serves, ranks 1 and 2 work. Bug numbers are those of the original's list. More faults, in all modes
and phases: ``test_random_faults.py``.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mpi.faults.run import SCRIPT, told
from tests.mpi.faults.trial import SERVED
from tests.mpi.jobs import Finished, clean_environment, run_job

HOST = socket.gethostname()
ENDLESS = "1000000"   # steps
SOON = 10             # seconds from the fault to the end, on a machine that does other things too
IN_ORDER = "came to the end\n"


class Ended(NamedTuple):
    """A job, the seconds it lasted after the fault (None where there was none), and what ranks said of their
    failures."""

    job: Finished
    after: "float | None"
    said: list

    def with_code(self, code, soon=SOON):
        """Whether it ended with this code (None: any but 0), soon after the fault."""
        right = self.job.code not in (0, None) if code is None else self.job.code == code
        return right and (self.after is None or self.after < soon)

    def says(self, *parts):
        """Whether there is one sentence, with these parts in this order."""
        return len(self.said) == 1 and re.search(".*".join(map(re.escape, parts)), self.said[0]) is not None


def faulty(rank, moment, fault, steps=10, ranks=3, deadline_ms=60000, via="mpirun", python=(), mode="sync",
           **variables):
    """Run the script; ``pytest -s`` shows a line of the matrix."""
    phase, step = ("step", moment.removeprefix("step ")) if moment.startswith("step ") else (moment, 0)
    with tempfile.TemporaryDirectory() as folder:
        env = {**told(JOB=folder, RANK=rank, PHASE=phase, STEP=step, FAULT=fault, STEPS=steps, MODE=mode, ROLE=""),
               **({"FLEET_MPI_SERVERS": "1"} if mode in SERVED else {}), "FLAGS_rpc_deadline": str(deadline_ms),
               **variables}
        job = run_job(ranks, [*python, SCRIPT], env=env, via=via, timeout=90)
        at = Path(folder, "at")
        ended = seen(job, float(at.read_text()) if at.exists() else None)
    after = "" if ended.after is None else f"{ended.after:.1f} s"
    others = " ".join(f"{name}={value}" for name, value in variables.items())
    print(f"\n| {mode} {others} {' '.join(python)} | rank {rank} | {moment} | {fault} | {job.code} | {after} | "
          f"{' '.join(ended.said)} |")
    return ended


def seen(job, failed_at=None):
    """What is looked at in a job that has just ended."""
    said = [line for line in job.err.splitlines() if re.match(r"fleet_mpi: rank \d+ (\(|on )", line)]
    return Ended(job, None if failed_at is None else time.time() - failed_at, said)


# ---------------------------------------------------------------------- ends in order

@pytest.mark.parametrize("rank, moment, fault, ends", (
    (1, "no goodbye", "nothing", (0, 1, 2)),        # neither stop_worker nor close
    (1, "step 3", "exit(0)", (0, 2)),               # the oldest guide's way
    (2, "step 3", "sys.exit(0)", (0, 1)),
    (1, "after minimize", "exit(0)", (0, 2)),       # never connected
    (2, "after init", "exit(0)", (0, 1))))
def test_servers_end_when_workers_end_in_whatever_way_b9(rank, moment, fault, ends):
    """B9: the original's servers never end by themselves."""
    ended = faulty(rank, moment, fault)
    assert ended.job.code == 0 and not ended.said, ended.job.story()
    assert [number for number in range(3) if IN_ORDER in ended.job.ranks[number].out] == list(ends), ended.job.story()


def test_workers_stop_before_servers_leave_and_all_end_together_b8():
    """B8: in the original a worker waits in MPI_Finalize for servers that wait for its goodbye."""
    ended = faulty(1, "end", "nothing", ranks=4, FLEET_MPI_SERVERS="2")
    assert ended.with_code(0) and all(IN_ORDER in rank.out for rank in ended.job.ranks), ended.job.story()


def test_a_job_in_which_nobody_trains_ends(tmp_path):
    (tmp_path / "look.py").write_text(textwrap.dedent("""
        from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        fleet.init()
        print(fleet.worker_num(), fleet.server_num())
        """))
    ended = run_job(3, [str(tmp_path / "look.py")])
    assert ended.code == 0 and ended.out == "1 2\n" * 3, ended.story()


# The worker fails when the others are gone: MPICH's mpirun kills those that are not, and its code is the signal's then.
FAIL_LAST = """
def has_ended(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

while fleet.is_worker() and not all(has_ended(one) for one in pids if one != os.getpid()):
    time.sleep(0.01)
sys.exit(3 if fleet.is_worker() else 0)
"""


@pytest.mark.parametrize("last, code", (("", 0), (FAIL_LAST, 3)), ids=("all_well", "one_fails"))
def test_a_script_may_end_mpi_by_itself(tmp_path, last, code):
    (tmp_path / "look.py").write_text(textwrap.dedent("""
        import os, sys, time
        from mpi4py import MPI
        from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        fleet.init()
        pids = MPI.COMM_WORLD.allgather(os.getpid())
        MPI.Finalize()
        print("ended", flush=True)
        """) + last)
    ended = run_job(3, [str(tmp_path / "look.py")])
    assert ended.code == code and ended.out == "ended\n" * 3, ended.story()
    assert "Traceback" not in ended.err and ("exit code 3" in ended.err) == bool(last), ended.story()


def test_a_server_that_ends_without_serving_tells_the_workers():
    ended = faulty(0, "after minimize", "exit(0)")
    assert ended.with_code(2), ended.job.story()
    assert ended.says(f"rank 0 (server 0, host {HOST}): UsageError: worker", "ended without serving", "run_server"), \
        ended.job.story()


def test_a_worker_that_ends_without_a_trace_is_named_by_the_launcher():
    ended = faulty(1, "step 3", "os._exit(0)", ENDLESS,
                   via="launch")   # no goodbye can be said: for both MPIs it has failed
    assert ended.with_code(4), ended.job.story()
    assert ended.says(f"rank 1 (worker 0) on {HOST} ended in the middle of the job"), ended.job.story()


# ---------------------------------------------------------------------- failures

PLAIN, RUNNER = (), ("-m", "fleet_mpi")
FAILED, LEFT = "ValueError: asked to fail", "exit code 3"


@pytest.mark.parametrize("python, rank, moment, fault, code, who, cause", (
    (PLAIN, 1, "before init", "raise", 1, "(host {host})", FAILED),
    (PLAIN, 0, "before init", "SystemExit(3)", 3, "(host {host})", LEFT),
    (RUNNER, 1, "start", "raise", 1, "(host {host})", FAILED),
    (PLAIN, 2, "after init", "exit(3)", 3, "(worker 1, host {host})", LEFT),
    (PLAIN, 0, "after init", "thread", 1, "(server 0, host {host})", FAILED),
    (RUNNER, 1, "connecting", "raise", 1, "(worker 0, host {host})", FAILED),
    (PLAIN, 1, "step 0", "thread", 1, "(worker 0, host {host})", FAILED),
    (PLAIN, 1, "step 7", "raise", 1, "(worker 0, host {host}, step 7)", FAILED),
    (PLAIN, 2, "step 7", "sys.exit(3)", 3, "(worker 1, host {host}, step 7)", LEFT),
    (PLAIN, 1, "step 7", "SystemExit(3)", 3, "(worker 0, host {host}, step 7)", LEFT),
    (RUNNER, 1, "step 7", "SystemExit(3)", 3, "(worker 0, host {host}, step 7)", LEFT),
    (PLAIN, 0, "step 5", "raise", 2, "(server 0, host {host}, step ", FAILED),
    (RUNNER, 0, "step 5", "exit(3)", 3, "(server 0, host {host}, step ", LEFT),
    (PLAIN, 0, "step 5", "thread", 1, "(server 0, host {host}, step ", FAILED)))
def test_a_failure_ends_the_job_at_once_with_its_code_and_one_sentence(python, rank, moment, fault, code, who, cause):
    ended = faulty(rank, moment, fault, ENDLESS, python=python)
    assert ended.with_code(code), ended.job.story()
    assert ended.says(f"fleet_mpi: rank {rank} {who.format(host=HOST)}", cause), ended.job.story()
    assert IN_ORDER not in ended.job.out, ended.job.story()


@pytest.mark.parametrize("rank, moment, fault, code, who, cause", (
    (2, "end", "raise", 1, "(worker 1, host {host}, step 10)", FAILED),
    (0, "end", "sys.exit(3)", 3, "(server 0, host {host}, step 10)", LEFT)))
def test_a_failure_after_training_fails_the_job(rank, moment, fault, code, who, cause):
    ended = faulty(rank, moment, fault)
    assert ended.with_code(code), ended.job.story()
    assert ended.says(f"fleet_mpi: rank {rank} {who.format(host=HOST)}", cause), ended.job.story()


# ---------------------------------------------------------------------- stalls

@pytest.mark.parametrize("rank, moment, fault, who, whom", (
    (2, "before init", "sleep", "rank 0 (host {host}): Stalled", "rank 2 (host {host}) did not come"),
    (0, "before init", "sleep", "rank 1 (host {host}): Stalled", "rank 0 (host {host}) did not come"),
    (0, "after minimize", "sleep", "rank 1 (worker 0, host {host}): Stalled",
     "server 0 (rank 0, host {host}) has not begun to serve"),
    (2, "after minimize", "sleep", "rank 0 (server 0, host {host}, step 0)", "for worker 1 (rank 2, host {host})"),
    (1, "step 3", "sleep", "rank 0 (server 0, host {host}, step 3)", "for worker 0 (rank 1, host {host})"),
    (0, "step 5", "stop", "rank 0 (server 0, host {host}): Stalled", "stopped by a signal")))
def test_who_stalls_is_named_after_the_deadline_b40(rank, moment, fault, who, whom):
    """B40: the original aborts the process that waited; here the one that was waited for is named, after a set time."""
    ended = faulty(rank, moment, fault, ENDLESS, deadline_ms=3000)
    assert ended.with_code(5, SOON + 10), ended.job.story()
    assert ended.says(who.format(host=HOST), whom.format(host=HOST), "FLAGS_rpc_deadline"), ended.job.story()


def test_compiling_the_first_step_is_no_stall(tmp_path):
    ended = faulty(1, "end", "nothing", deadline_ms=3000, NUMBA_CACHE_DIR=str(tmp_path))
    assert ended.job.code == 0, ended.job.story()
    assert list(tmp_path.rglob("*.nbc")), "nothing was compiled"


def test_a_server_that_waits_uses_next_to_no_cpu():
    ended = faulty(1, "step 3", "nap", ranks=2)
    assert ended.job.code == 0, ended.job.story()
    share = float(re.search(r"idle: ([\d.]+)", ended.job.ranks[0].out)[1])
    assert share < 0.05


# ---------------------------------------------------------------------- kills

@pytest.mark.parametrize("rank, moment", ((2, "step 3"), (0, "step 5")))
def test_a_killed_rank_is_named_by_the_launcher(rank, moment):
    ended = faulty(rank, moment, "kill", ENDLESS, via="launch")
    assert ended.with_code(4), ended.job.story()
    assert ended.says(f"rank {rank} ({'worker 1' if rank else 'server 0'}) on {HOST} was killed by signal 9"), \
        ended.job.story()


# ---------------------------------------------------------------------- different jobs

@pytest.mark.parametrize("difference, code, named", (
    ("another layer", 2, "fc_0.w_0 (variable) is float32 [4, 7] with the worker and float32 [4, 6] with the server"),
    ("another mode", 2, "mode is half_async with the worker and sync with the server"),
    ("another optimizer", 2, "is momentum("),
    ("another version", 3, "rank 2 runs fleet_mpi '0.0.1'")))
def test_a_rank_with_another_job_is_refused_with_the_difference(difference, code, named):
    ended = faulty(2, difference, "nothing", ENDLESS)
    assert ended.with_code(code), ended.job.story()
    assert ended.says(named), ended.job.story()
    assert "rank 2" in ended.said[0]


# ---------------------------------------------------------------------- roles from the script's own variables

BY_VARIABLES = """
    import os, sys
    import numpy as np
    from fleet_mpi import fluid

    x = fluid.layers.data(name="x", shape=[4], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, size=1), y))
    optimize_ops, params_grads = fluid.optimizer.SGD(0.01).minimize(loss)
    role, number = os.environ["PADDLE_TRAINING_ROLE"], int(os.environ["PADDLE_TRAINER_ID"])
    servers = [f"{ip}:6174" for ip in os.environ["PADDLE_PSERVER_IPS"].split(",")]
    t = fluid.DistributeTranspiler()
    t.transpile(number, pservers=",".join(servers), trainers=int(os.environ["PADDLE_TRAINERS"]))
    exe = fluid.Executor(fluid.CPUPlace())
    if role == "PSERVER":
        own = os.environ["PADDLE_CURRENT_IP"] + ":6174"
        program = t.get_pserver_program(own)
        exe.run(t.get_startup_program(own, program))
        exe.run(program)
        sys.stdout.write("served\\n")
    else:
        exe.run(fluid.default_startup_program())
        for step in range(100):
            values = np.full((2, 4), 1.0 + number, "float32")
            found, = exe.run(t.get_trainer_program(), feed={"x": values, "y": values[:, :1]}, fetch_list=[loss])
            if step == 20 + number:
                sys.stdout.write(f"trained {number}\\n")
                exit(0)
    """
JOB = {"PADDLE_PSERVER_IPS": "10.0.0.1,10.0.0.2", "PADDLE_TRAINERS": "2", "FLAGS_rpc_deadline": "60000"}


def server(number):
    """What tells a process that it is this server."""
    return {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_TRAINER_ID": str(number),
            "PADDLE_CURRENT_IP": f"10.0.0.{number + 1}"}


def worker(number):
    """What tells a process that it is this worker."""
    return {"PADDLE_TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(number)}


@pytest.fixture
def run_parts(tmp_path):
    """Run one mpirun whose parts have these variables."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(BY_VARIABLES))

    def run(first, *others, **variables):
        command = ["-m", "fleet_mpi", str(path)]
        return seen(run_job(1, command, env={**JOB, **variables, **first},
                            mpmd=[(1, command, part) for part in others]))
    return run


def test_roles_come_from_the_scripts_own_variables_in_any_order(run_parts):
    ended = run_parts(worker(1), server(1), server(0), worker(0))
    assert ended.job.code == 0, ended.job.story()
    assert [rank.out for rank in ended.job.ranks] == ["trained 1\n", "served\n", "served\n", "trained 0\n"]


@pytest.mark.parametrize("parts, variables, refused", (
    ((server(0), worker(0), worker(0)), {"PADDLE_PSERVER_IPS": "10.0.0.1"},
     "rank 1 (host {host}) and rank 2 (host {host}) both say that they are worker 0"),
    ((server(0), worker(0), worker(1)), {"PADDLE_PSERVER_IPS": "10.0.0.1", "PADDLE_TRAINERS": "3"},
     "describes a job with 3 worker(s), but 2 of the 3"),
    ((server(0), worker(0), worker(1)), {}, "describes a job with 2 server(s), but 1 of the 3")))
def test_processes_that_make_no_job_are_refused(run_parts, parts, variables, refused):
    ended = run_parts(*parts, **variables)
    assert ended.with_code(2), ended.job.story()
    assert ended.says(refused.format(host=HOST)), ended.job.story()


@pytest.mark.parametrize("me", (server(0), worker(1)), ids=lambda me: me["PADDLE_TRAINING_ROLE"])
def test_a_process_begun_by_hand_prints_the_line_that_works(tmp_path, me):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(BY_VARIABLES))
    variables = {**clean_environment(), **JOB, **me, "PADDLE_CURRENT_IP": me.get("PADDLE_CURRENT_IP", "10.0.0.9")}
    alone = subprocess.run([sys.executable, "-m", "fleet_mpi", str(path)], capture_output=True, text=True, timeout=60,
                           env=variables)
    assert (alone.returncode, alone.stdout) == (3, ""), alone.stderr
    line = alone.stderr.splitlines()[-1]
    assert line.count(" : ") == 3 and os.path.basename(shlex.split(line)[0]) == "mpirun", alone.stderr
    together = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60,
                              env={**clean_environment(), "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert together.returncode == 0, together.stderr
    assert sorted(together.stdout.splitlines()) == ["served", "served", "trained 0", "trained 1"]
