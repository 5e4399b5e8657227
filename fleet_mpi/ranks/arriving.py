"""Before MPI starts: the ranks of one machine wait for each other while waiting can still be ended.

MPI_Init waits for all ranks, for ever, and no Python code runs meanwhile. So every rank first greets its neighbours, at
names in Linux's abstract name space that vanish with the process, and enters MPI_Init when all have greeted it. It also
means that a rank that fails before finds nobody in MPI_Init. Knows what launchers tell by variables; where they say too
little, nobody waits here.
"""

import os
import select
import socket
import sys
import time
from typing import NamedTuple

from fleet_mpi import settings
from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import slurm_step

_GREET_AGAIN_MS = 100  # those that have not come, which greet when they do, and those with too many greetings to read
# What starts the ranks of one machine: MPICH's, and Open MPI's on the first and on other machines, version 5 and
# before.
_PROXY = "hydra_pmi_proxy"
_DAEMONS = "prterun", "prted", "mpirun", "orterun", "orted"


class Neighbours(NamedTuple):
    """The ranks that one launcher started on one machine."""

    job: str        # no other job on this machine has it
    number: int     # of this process: its rank where the whole job runs here, else its number on this machine
    count: int      # type: ignore[assignment]  # a method of tuples
    are_all: bool   # whether the whole job runs here

    def address(self, number: int | str) -> str:
        """Where one of them is greeted, in the name space of sockets; "watcher": where that one is."""
        return f"\0fleet_mpi {self.job} {number}"

    def name(self, number: int) -> str:
        """How people call one of them."""
        host = socket.gethostname()
        return f"rank {number} (host {host})" if self.are_all else f"process {number} on host {host}"


def neighbours() -> Neighbours | None:
    """The ranks of this job on this machine; None where they are not known, or cannot see each other this way."""
    if sys.platform != "linux":
        return None
    job, size, rank = settings.get("PMIX_NAMESPACE"), settings.get("OMPI_COMM_WORLD_SIZE"), settings.get("PMIX_RANK")
    number, count = settings.get("OMPI_COMM_WORLD_LOCAL_RANK"), settings.get("OMPI_COMM_WORLD_LOCAL_SIZE")
    if job and size:
        job = f"{job} {_ancestor(*_DAEMONS)}"  # with the daemon: several machines may be one (containers, say)
    else:
        job, size, rank = _ancestor(_PROXY), settings.get("PMI_SIZE"), settings.get("PMI_RANK")
        number, count = settings.get("MPI_LOCALRANKID"), settings.get("MPI_LOCALNRANKS")
    if not job:
        job, size, rank, number, count = slurm_step.neighbours()
    if count == size:
        number = rank  # Open MPI counts the ranks of a machine in another order
    return Neighbours(job, number, count, count == size) if job and 0 <= number < count else None


def meet_neighbours(seconds: float) -> None:
    """Wait until all ranks of this machine are here; Stalled names those that are not after so many seconds."""
    known = neighbours()
    if known is None or known.count == 1:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        try:
            door.bind(known.address(known.number))
            missing = _missing(known, door, seconds)
        except OSError:
            return  # MPI has to do without: it says less, and no sooner
    if missing:
        names = ", ".join(known.name(number) for number in missing)
        error = Stalled(f"starting MPI: {names} did not come within {seconds:g} s (FLAGS_rpc_deadline): every rank "
                        f"must call fleet.init(), or ask the transpiler for its program")
        error.reported_by_peer = any(number not in missing for number in range(known.number))
        raise error


def _missing(known: Neighbours, door: socket.socket, seconds: float) -> list[int]:
    """The numbers of the neighbours that have not come after so many seconds.

    A rank goes on when it was greeted by all and has greeted all: whoever goes on and fails at once was here for all.
    """
    until = time.monotonic() + seconds
    silent = set(range(known.count)) - {known.number}
    unaware = {number for number in silent if not _greet(known, door, number, was_here=False)}
    while silent or unaware:
        heard = _next_greeting(door)
        silent.discard(heard)
        unaware -= {number for number in (unaware if heard is None else unaware & {heard})
                    if _greet(known, door, number, was_here=number not in silent)}
        if time.monotonic() > until:
            return sorted(silent)
    return []


def _greet(known: Neighbours, door: socket.socket, number: int, was_here: bool) -> bool:
    """Send a greeting; True once it is queued, or the neighbour has exited."""
    try:
        door.sendto(b"%d" % known.number, socket.MSG_DONTWAIT, known.address(number))
    except ConnectionRefusedError:
        return was_here
    except BlockingIOError:
        return False  # the kernel keeps some ten greetings for it
    return True


def _next_greeting(door: socket.socket) -> int | None:
    """Receive a greeting: the number of the neighbour that sent it; None after a timeout."""
    coming = select.poll()
    coming.register(door, select.POLLIN)
    try:
        return int(door.recv(32)) if coming.poll(_GREET_AGAIN_MS) else None
    except ValueError:
        return None


def _ancestor(*names: str) -> str:
    """The process number, as text, of the nearest ancestor with such a name; empty if there is none."""
    process = os.getppid()
    while process > 1:
        try:
            with open(f"/proc/{process}/stat") as file:
                text = file.read()
        except OSError:
            return ""
        # The name stands in brackets and may have brackets itself; the parent is the second word after it.
        if text[text.index("(") + 1:text.rindex(")")] in names:
            return str(process)
        process = int(text[text.rindex(")") + 2:].split()[1])
    return ""


def launcher_line() -> int:
    """The file descriptor to MPICH's mpirun, -1 where another one started this process: srun has such a line too, but
    speaks another protocol."""
    return settings.get("PMI_FD") if settings.get("MPI_LOCALRANKID") >= 0 else -1


def launcher_job() -> str:
    """The name that MPICH's mpirun has given to this job, which MPICH hashes for the names of its shared memory; empty
    under another one, and where it does not answer as it should."""
    line, answer = launcher_line(), b""
    if line < 0:
        return ""
    try:
        os.write(line, b"cmd=get_my_kvsname\n")
        # The whole answer: MPI_Init, which speaks on this line next, would take what is left for its own.
        while not answer.endswith(b"\n"):
            read = os.read(line, 4096)
            if not read:
                return ""
            answer += read
    except OSError:
        return ""
    words = dict(word.partition("=")[::2] for word in answer.decode(errors="replace").split())
    return words.get("kvsname", "") if words.get("cmd") == "my_kvsname" else ""


def end_job(code: int) -> None:
    """End all ranks of a job in which MPI was not started: what MPI_Abort does there.

    Open MPI ends a job when a process ends with a code; MPICH's launcher takes no notice of one that has not started
    MPI, and has to be told by a line of its own protocol.
    """
    if launcher_line() >= 0:
        try:
            os.write(launcher_line(), b"cmd=abort exitcode=%d\n" % code)
        except OSError:
            pass  # no such launcher: the code has to do
        else:
            return  # its signal is on its way
    os._exit(code)
