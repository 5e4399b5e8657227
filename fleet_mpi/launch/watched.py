"""``python watched.py COMMAND...``: runs one rank of a job and notes how it ended. Needs the standard library only.

No mpirun tells reliably which rank failed first, and how: MPICH kills the others before it looks, names any of
them, and mixes their codes into one. The process that waits for a rank knows, before mpirun does. It says in one
sentence which rank a signal has killed, ends with the code of a lost peer, and leaves a note for the launcher: the
first of all ranks counts. A signal that mpirun sends is passed on and is no failure; if this process is killed, its
rank goes with it.

It also gives the rank what only follows from its number, the PADDLE_* variables of its role, and where there is a
folder for logs, writes the rank's output there and shows it further on if that is asked for.
"""

import ctypes
import os
import re
import selectors
import signal
import sys

PEER_LOST = 4
PREEMPTED = 75  # no failure: the state was saved, and the job wants to be started again
FOLDER = "FLEET_MPI_LAUNCH_DIR"
FIRST = "first_to_fail"
SPOKE = "first_to_speak"
# The job, for the ranks: how many serve (unset: the script decides), every worker's device, ranks on a host, and the
# output: the folder of logs, how they are opened (a or w), whose is shown (first, all or none).
SERVERS, DEVICES, PER_NODE = "FLEET_MPI_LAUNCH_SERVERS", "FLEET_MPI_LAUNCH_DEVICES", "FLEET_MPI_LAUNCH_PER_NODE"
LOGS, OPENED, ECHO = "FLEET_MPI_LAUNCH_LOGS", "FLEET_MPI_LAUNCH_OPENED", "FLEET_MPI_LAUNCH_ECHO"
SERVER_LIST, WORKER_LIST = "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS"
# What would tell a rank of another role than its own, if it were inherited.
OF_ROLES = ("TRAINING_ROLE", "PADDLE_TRAINING_ROLE", "PADDLE_TRAINER_ID", "PADDLE_PSERVER_ID", "PADDLE_PORT", "POD_IP",
            "PADDLE_CURRENT_ENDPOINT", SERVER_LIST)
RANK_IN = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
LAST_LINES = 40
_KEPT_BYTES = 1 << 14
_LOOKING_S = 0.5  # for a rank that has ended while something it started keeps its pipes open
_LAST_READS = 64  # of 64 KiB: more than a pipe holds
_SET_PARENT_DEATH_SIGNAL = 1  # of linux/prctl.h
_COULD_NOT_START = 127
# How a rank of this package says that it fails, before it ends the job (ranks/ending.py), and how MPICH's Abort does:
# MPICH leaves a watcher no time after.
_FAILING = re.compile(rb"^fleet_mpi: rank \d+ \(.*?\): |^Abort\(\d+\) on node \d+ ", re.M)


def main(command):
    """Run the command as a child; returns its exit code, or that of a lost peer where a signal killed it."""
    os.environ.update(rank_variables(os.environ, rank()))
    for name in inherited(os.environ):
        del os.environ[name]
    output = Output(os.environ) if os.environ.get(LOGS) else None
    passed_on = set()
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is a child to pass them on to
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, parent, output)

    def pass_on(number, frame):
        passed_on.add(number)
        os.kill(child, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    code = os.waitstatus_to_exitcode(output.follow(child) if output else os.waitpid(child, 0)[1])
    if -code in passed_on:
        return 128 - code
    return _ended(code, output)


def _ended(code, output):
    """Say and note how the rank ended; returns the code for mpirun."""
    killed_by, code = max(0, -code), PEER_LOST if code < 0 else code
    if code:
        leave_note(os.environ.get(FOLDER), FIRST, str(code))
    if killed_by:
        _say(sentence(killed_by))
    if code and output:
        output.speak(None if killed_by else f"ended with exit code {code}")
    return code


def _become(command, parent, output):
    """In the child: be the command, in a process group of its own: each signal comes once, through the parent."""
    try:
        os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if output:
            output.connect()
        if os.getppid() == parent:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
            os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"fleet_mpi: cannot start {command[0]}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(_COULD_NOT_START)


def rank():
    """The number mpirun has given to this rank, as text."""
    return next((os.environ[name] for name in RANK_IN if name in os.environ), "?")


def role_of(environ, number):
    """("server" or "worker", its number) of a rank; ("rank", number) where the script decides who serves."""
    if SERVERS not in environ or not number.isdecimal():
        return "rank", number
    servers = int(environ[SERVERS])
    return ("server", str(int(number))) if int(number) < servers else ("worker", str(int(number) - servers))


def inherited(environ):
    """Names of variables that are set, but belong to another role than this rank's."""
    if SERVERS not in environ:
        return []
    own = rank_variables(environ, rank())
    return [name for name in OF_ROLES if name in environ and name not in own
            and not (name == SERVER_LIST and int(environ[SERVERS]))]


def rank_variables(environ, number):
    """What the original's launchers tell a process of this number by variables; nothing where the script decides."""
    role, index = role_of(environ, number)
    if role == "rank":
        return {}
    workers, servers = environ.get(WORKER_LIST, "").split(","), environ.get(SERVER_LIST, "").split(",")
    if role == "server":
        host, _, port = servers[int(index)].rpartition(":")
        return {**_named("PSERVER"), "PADDLE_PSERVER_ID": index, "POD_IP": host, "PADDLE_PORT": port}
    told = {"PADDLE_TRAINER_ID": index, "PADDLE_CURRENT_ENDPOINT": workers[int(index)]}
    devices = [part for part in environ.get(DEVICES, "").split(";") if part]
    if devices:
        told["FLAGS_selected_gpus"] = devices[int(index)]
    return {**told, **(_named("TRAINER") if int(environ[SERVERS]) else _of_2_6(environ, index, workers))}


def _named(role):
    return {"TRAINING_ROLE": role, "PADDLE_TRAINING_ROLE": role}


def _of_2_6(environ, index, workers):
    """The names that version 2.6 added for the ranks of a collective job."""
    per_node = int(environ.get(PER_NODE) or len(workers))
    local = str(int(index) % per_node)
    return {"PADDLE_GLOBAL_RANK": index, "PADDLE_GLOBAL_SIZE": str(len(workers)), "PADDLE_LOCAL_RANK": local,
            "PADDLE_RANK_IN_NODE": local, "PADDLE_LOCAL_SIZE": str(per_node),
            "PADDLE_NNODES": str(len(workers) // per_node)}


def log_name(role, index):
    """The name of a rank's log file."""
    return ("serverlog." if role == "server" else "workerlog.") + index


def failing(data):
    """The line in this part of a rank's output that says that the rank is about to end the job; empty if there is none."""
    found = _FAILING.search(data)
    return data[found.start():].splitlines()[0].decode(errors="replace") if found else ""


class Output:
    """What a rank writes: into its log file, and further on where it is to be shown."""

    def __init__(self, environ):
        role, index = role_of(environ, rank())
        self.who = f"rank {rank()}" + (f" ({role} {index})" if role != "rank" else "")
        self.path = os.path.join(environ[LOGS], log_name(role, index))
        how = os.O_APPEND if environ.get(OPENED) == "a" else os.O_TRUNC
        try:
            self.log = os.open(self.path, os.O_WRONLY | os.O_CREAT | how, 0o666)
        except OSError as error:
            sys.exit(f"fleet_mpi: {self.who} on {os.uname().nodename} cannot write its log: {error}")
        shown = environ.get(ECHO, "all")
        self.shown = shown == "all" or shown == "first" and role != "server" and index == "0"
        self.folder = environ.get(FOLDER)
        self.pipes = {1: os.pipe(), 2: os.pipe()}
        self.recent = b""
        self.spoke = False
        # A script that prints is to be heard as it goes on, also through a pipe.
        environ.setdefault("PYTHONUNBUFFERED", "1")

    def connect(self):
        """In the rank: write into the pipes."""
        for stream, (_, end) in self.pipes.items():
            os.dup2(end, stream)

    def follow(self, child):
        """Pass everything on until the child has ended and nothing is left; returns its wait status.

        What the child itself has started may keep the pipes open for longer, and is not waited for.
        """
        selector = selectors.DefaultSelector()
        for stream, (start, end) in self.pipes.items():
            os.close(end)
            os.set_blocking(start, False)
            selector.register(start, selectors.EVENT_READ, stream)
        ended = status = 0
        while not ended and selector.get_map():
            for key, _ in selector.select(_LOOKING_S):
                self._pass_on(key, selector)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            status = os.waitpid(child, 0)[1]
        for _ in range(_LAST_READS):
            for key, _ in selector.select(0) if selector.get_map() else ():
                self._pass_on(key, selector)
        return status

    def _pass_on(self, key, selector):
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(key.fd)
            return
        _write(self.log, data)
        if self.shown:
            _write(key.data, data)
        self.recent = (self.recent + data)[-_KEPT_BYTES:]
        if key.data == 2 and failing(data):
            self.speak("fails", failing(data))

    def speak(self, how, why=""):
        """Tell how this rank ended, with its last words, if it is the first of all and they are not seen already."""
        if self.spoke or not leave_note(self.folder, SPOKE, why):
            return
        self.spoke = True
        if f"{how} {why}".rstrip().endswith(f"exit code {PREEMPTED}") or "): Preempted: " in why:
            _say(f"fleet_mpi: {self.who} on {os.uname().nodename} was preempted: exit code {PREEMPTED}\n")
            return
        begins = f"fleet_mpi: {self.who} on {os.uname().nodename} {how or 'was the first to fail'}"
        if self.shown:
            _say(f"{begins}; its log is {self.path}\n" if how != "fails" else "")
            return
        lines = self.recent.decode(errors="replace").splitlines()[-LAST_LINES:]
        _say(f"{begins}; the last words in {self.path}:\n" + "".join(f"    {line}\n" for line in lines))


def _write(file, data):
    """All of it; a reader that has gone is no reason to end the rank."""
    try:
        while data:
            data = data[os.write(file, data):]
    except OSError:
        pass


def _say(text):
    _write(2, text.encode())


def sentence(number):
    """Which rank, where, killed by what."""
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    return f"fleet_mpi: rank {rank()} on {os.uname().nodename} was killed by signal {number} ({name})\n"


def leave_note(folder, name, text):
    """Write a note where the launcher looks, unless another rank has been quicker; returns whether this one was first."""
    if not folder:
        return False
    own = os.path.join(folder, f"{name}.{rank()}")
    try:
        with open(own, "w") as file:
            file.write(text)
        os.link(own, os.path.join(folder, name))  # whole or not at all: this process may be killed at any moment
    except OSError:
        return False  # second, or the launcher's folder is not on this host: then mpirun's code has to do
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
