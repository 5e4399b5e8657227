"""A Slurm of one machine: munged, slurmctld and several slurmd of our own, in a folder of their own.

Everything goes through SLURM_CONF; a Slurm that is installed and running here is neither asked nor touched. The
daemons stay in the foreground as our children and are ended by their own process ids.
"""

import ctypes
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "sbatch", "scontrol", "munged")
NODES, CPUS = 2, 4
ROOT = Path(__file__).resolve().parents[2]
# What Open MPI must be told here, and need not be told on a cluster: root starts jobs; nodes claim more CPUs than the
# machine has; and two nodes that are one machine give their shared memory the same names, which ends in crashes.
OF_THIS_MACHINE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,tcp",
                   "OMPI_MCA_mtl": "^ofi", "PRTE_MCA_hwloc_default_binding_policy": "none"}
STARTS_S = 30
_SET_PARENT_DEATH_SIGNAL = 1  # of linux/prctl.h
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}

CONFIGURATION = """\
ClusterName=fleet_mpi_test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=10000,batch_sched_delay=0,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
JobRequeue=1
"""


def why_not():
    """A sentence on why no cluster can be started here, or None."""
    missing = [name for name in NEEDED if shutil.which(name, path=_path()) is None]
    if missing:
        return f"no Slurm here ({', '.join(missing)} not found); .ci/run installs it"
    if os.geteuid() != 0:
        return "Slurm's daemons of a test start as root only"
    return None


class Cluster:
    """The daemons, and the commands that talk to them. Use as a context."""

    def __init__(self, folder):
        self.folder = Path(folder)
        # Jobs run as a user would start them: with this Python and its MPI, and nothing of the tests' surroundings.
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("SLURM", "SBATCH", "OMPI_", "PMI", "PADDLE_", "FLEET_MPI_"))}
        self.environ = {**kept, **OF_THIS_MACHINE, "SLURM_CONF": str(self.folder / "slurm.conf"),
                        "PYTHON": sys.executable, "PYTHONPATH": str(ROOT),
                        "PATH": f"{Path(sys.executable).parent}:{_path()}"}
        self.daemons = []

    def __enter__(self):
        try:
            self._configure()
            self._start_munge()
            self._start("slurmctld", "-D", "-c")
            for number in range(1, NODES + 1):
                self._start("slurmd", "-D", "-N", f"n{number}")
            self._until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._end_jobs()
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, *words, check=True, cwd=None, **more):
        """Run one of Slurm's commands, or another one, in the cluster's surroundings; returns its stdout."""
        done = subprocess.run([str(word) for word in words], env=self.environ | more, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL, cwd=cwd)
        if check and done.returncode:
            raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, *words, **environ):
        """sbatch; returns the number of the job."""
        return int(re.search(r"\d+", self.run("sbatch", "--parsable", *words, **environ))[0])

    def state(self, job):
        """What scontrol says of a job, or of the first task of an array, as a dictionary."""
        said = self.run("scontrol", "show", "job", job)
        return dict(re.findall(r"(\w+)=(\S*)", said.split("\n\n")[0]))

    def states(self, job):
        """JobState of every task of an array, or part of a heterogeneous job."""
        return re.findall(r"JobState=(\w+)", self.run("scontrol", "show", "job", job))

    def wait(self, job, seconds=180):
        """Wait until a job, with all its tasks or parts, has ended; returns the set of their states."""
        return self.until(lambda: _all_ended(self.states(job)), seconds, lambda: self.story(job))

    def until(self, look, seconds, story=str):
        """Wait until ``look()`` gives something; returns it."""
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            found = look()
            if found:
                return found
            time.sleep(0.2)
        raise AssertionError(f"not within {seconds} s: {story()}")

    def until_it_trains(self, job, seconds=120):
        """Wait until the workers of steps.py are past the start, in which a signal would kill them."""
        self.until(lambda: "begins at step" in self.output(job), seconds, lambda: self.story(job))

    def signal(self, job):
        """Ask the batch script of a job to stop, once its workers train."""
        self.until_it_trains(job)
        self.run("scancel", "--batch", "--signal=USR1", job)

    def start_again(self, job, seconds=120):
        """Wait until a job is back in the queue, and let it begin: Slurm would wait two minutes first."""
        def is_back():
            state = self.state(job)
            return state["Restarts"] == "1" and state["JobState"] == "PENDING"
        self.until(is_back, seconds, lambda: self.story(job))
        # Slurm refuses a job that begins in the very second in which it was taken back.
        time.sleep(2)
        # Its second part gets more time, since a busy machine may not be through with it in a minute either.
        self.run("scontrol", "update", f"JobId={job}", "TimeLimit=60", "StartTime=now")

    def output(self, job):
        """What a job has written so far."""
        path = Path(self.state(job)["StdOut"])
        return path.read_text(errors="replace") if path.exists() else ""

    def story(self, job):
        """All that is known of a job: its record, its output, the daemons' last words."""
        parts = [self.run("scontrol", "show", "job", job, check=False)]
        parts += [Path(path).read_text(errors="replace") for path in re.findall(r"Std(?:Out|Err)=(\S+)", parts[0])
                  if Path(path).exists()]
        parts += [f"---- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])
                  for path in sorted(self.folder.glob("*.log"))]
        return "\n".join(parts)

    def _end_jobs(self):
        """Cancel what a failed test has left: the daemons leave running jobs alone."""
        jobs = self.run("squeue", "-h", "-o", "%A", check=False).split()
        if jobs:
            self.run("scancel", *jobs, check=False)
            self.until(lambda: not self.run("squeue", "-h", check=False), 20, lambda: "jobs do not end")

    def _configure(self):
        (self.folder / "state").mkdir(parents=True)
        ports = _free_ports(NODES + 1)
        host = socket.gethostname()
        lines = [CONFIGURATION.format(host=host, folder=self.folder, port=ports[0])]
        for number, port in enumerate(ports[1:], 1):
            (self.folder / f"spool.n{number}").mkdir()
            lines.append(f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} "
                         f"RealMemory=2000 State=UNKNOWN\n")
        lines.append(f"PartitionName=main Nodes=n[1-{NODES}] Default=YES MaxTime=INFINITE State=UP\n")
        (self.folder / "slurm.conf").write_text("".join(lines))
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _start_munge(self):
        """A munged with a key and a socket of its own."""
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        self.folder.chmod(0o755)
        socket_path = self.folder / "munge.socket"
        self._start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket_path}",
                    f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.own.log",
                    f"--seed-file={self.folder}/munged.seed")
        self.until(socket_path.exists, STARTS_S, lambda: (self.folder / "munged.log").read_text())

    def _start(self, program, *words):
        name = program + (words[-1] if program == "slurmd" else "")
        with open(self.folder / f"{name}.log", "wb") as log:
            self.daemons.append(subprocess.Popen([program, *words], env=self.environ, stdin=subprocess.DEVNULL,
                                                 stdout=log,
                                                 stderr=subprocess.STDOUT, start_new_session=True,
                                                 preexec_fn=_end_with_us))

    def _until_idle(self):
        def idle():
            return self.run("sinfo", "-h", "-N", "-o", "%T", check=False).split() == ["idle"] * NODES
        self.until(idle, STARTS_S, lambda: self.story(0))


def _end_with_us():
    """In a daemon, before it starts: get TERM when the tests' process ends, even if that is killed."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _all_ended(states):
    return set(states) if states and set(states) <= ENDED else None


def _free_ports(count):
    holders = [socket.socket() for _ in range(count)]
    try:
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [holder.getsockname()[1] for holder in holders]
    finally:
        for holder in holders:
            holder.close()


def _path():
    """Debian puts the daemons where only root looks."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
