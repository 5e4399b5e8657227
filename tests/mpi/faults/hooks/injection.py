"""In every rank of a trial: does what the trial asks for, in the rank and at the place that it names.

Loaded at the start of Python, so that its ``atexit`` callback is the last one before MPI_Finalize, whatever runs the
script. The harness tells by variables what is to be done, and ranks tell by files in FAULTS_JOB what was. Only the
first process of each rank takes part, none that it starts.
"""

import atexit
import faulthandler
import os
import signal
import sys
import threading
import time

FOLDER = os.environ.get("FAULTS_JOB", "")
RANK = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", ""))
PHASE, FAULT = os.environ.get("FAULTS_PHASE", ""), os.environ.get("FAULTS_FAULT", "")
STEP = int(os.environ.get("FAULTS_STEP", "0"))
_IMPORTS = 25    # this many of our modules are imported, out of about 200
_LONGEST_S = 30  # for something that another process has to do


def _claimed():
    """Whether this process is the first of its rank."""
    if not (FOLDER and RANK):
        return False
    try:
        with open(os.path.join(FOLDER, f"rank.{RANK}"), "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        with open(os.path.join(FOLDER, f"rank.{RANK}")) as file:
            return file.read() == str(os.getpid())
    return True


def fail():
    """An error of the script."""
    raise ValueError("asked to fail")


def fail_in_a_thread():
    """The main thread goes on for long."""
    threading.Thread(target=fail).start()
    time.sleep(100)


def leave():
    """As scripts do that know of SystemExit."""
    raise SystemExit(3)


FAULTS = {
    "nothing": lambda: None,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "term": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "raise": fail,
    "thread": fail_in_a_thread,
    "SystemExit(3)": leave,
    "sys.exit(3)": lambda: sys.exit(3),
    "sys.exit(0)": lambda: sys.exit(0),
    "exit(3)": lambda: exit(3),
    "exit(0)": lambda: exit(0),
    "os._exit(0)": lambda: os._exit(0),
    "os._exit(7)": lambda: os._exit(7),
    "sleep": lambda: time.sleep(1000),
    "nap": lambda: time.sleep(4),
}


def at(phase):
    """Do it here, if this is the rank and the phase; once."""
    global PHASE
    if not (IS_IT and phase == PHASE):
        return
    PHASE = ""
    if os.environ["FAULTS_ROLE"] == "launcher":
        note("wanted", "launcher")
        return
    note("at", repr(time.time()))
    FAULTS[FAULT]()


def door(phase):
    """The rank is about to enter an MPI call that waits for all ranks: fail before, or within, while nobody else
    comes."""
    at(phase)
    if PHASE == f"in {phase}" and IS_IT:
        note("wanted", "launcher" if os.environ["FAULTS_ROLE"] == "launcher" else str(os.getpid()))
    elif PHASE == f"in {phase}":
        until("at")


def note(name, text=""):
    """Tell the harness and the other ranks; whole or not at all."""
    path = os.path.join(FOLDER, name)
    with open(f"{path}.{RANK}.part", "w") as file:
        file.write(text)
    os.replace(f"{path}.{RANK}.part", path)


def until(name, seconds=_LONGEST_S):
    """Wait until somebody has noted this."""
    begun = time.monotonic()
    while not os.path.exists(os.path.join(FOLDER, name)) and time.monotonic() < begun + seconds:
        time.sleep(0.005)


class Imports:
    """Sees the imports: of our own modules, and of mpi4py.MPI, which is MPI_Init."""

    seen = 0

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """Finds nothing itself."""
        cls.seen += name.startswith("fleet_mpi.")
        if cls.seen == _IMPORTS:
            at("imports")
        if name == "mpi4py.MPI":
            door("init")


def watch_saving(saved):
    """Fail within a save, where a file of the folder ``saved`` is opened; other ranks' faults are waited for there."""
    writes = []

    def see(event, args):
        if event == "open" and str(args[0]).startswith(saved) and args[2] & (os.O_WRONLY | os.O_RDWR):
            writes.append(args[0])
            if IS_IT and len(writes) == 1 + STEP % 4:
                at("save")
            elif PHASE == "save" and len(writes) == 1:
                until("at", 5)

    sys.addaudithook(see)


def is_finalized():
    """Whether MPI has ended; told by ``watch_finalize``."""
    return False


def watch_finalize():
    """Where MPI is ended by a call, that call is the place; else it is the end of the interpreter."""
    import mpi4py.MPI as MPI
    end = MPI.Finalize

    def finalize():
        door("finalize")
        end()
    MPI.Finalize = finalize
    global is_finalized
    is_finalized = MPI.Is_finalized


def _at_exit():
    if not is_finalized():
        door("finalize")


IS_A_RANK = _claimed()
IS_IT = IS_A_RANK and RANK == os.environ["FAULTS_RANK"]
if IS_A_RANK:
    # Every thread's stack, whatever holds Python's lock.
    faulthandler.register(signal.SIGUSR2, open(os.path.join(FOLDER, f"stack.{RANK}"), "w"))
    sys.meta_path.insert(0, Imports)
    atexit.register(_at_exit)
