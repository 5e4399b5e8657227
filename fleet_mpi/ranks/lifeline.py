"""A rank's connection to the watcher of its machine.

The watcher is a process of its own (``watcher.py``) that the first rank of a machine starts before MPI does. A rank
tells it who it is and when it is about to end; the rest the watcher learns from the kernel. What it sends back ends
this process. A rank without a watcher (another system, no launcher that says which ranks are here) does without.
"""

import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

from fleet_mpi.ranks import arriving, watcher

_ANSWERING_S = 10  # for the watcher, which has to start
_line = -1  # the file descriptor; no socket object, which the end of the interpreter would close before MPI_Finalize
_stream: ctypes.c_void_p | None = None  # of C, on the same line


def listen(address: str, count: int) -> None:
    """The first rank's: start the watcher of ``count`` ranks, to be met at this address."""
    with contextlib.suppress(OSError):  # no more processes allowed here, say: deadlines remain
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(address)
            listener.listen(count)
            _start(listener.fileno(), count)


def _start(listener: int, count: int) -> None:
    line = arriving.launcher_line()
    passed = [number for number in (listener, line) if number >= 0]
    # The process that is waited for leaves the watcher behind at once: a script may wait for all of its own children.
    # The job's name before MPI starts: ranks may be killed before anybody has seen the memory that they share.
    subprocess.run([sys.executable, "-I", "-S", watcher.__file__, str(listener), str(count), str(line),
                    arriving.launcher_job()],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=passed)


def connect(address: str, name: str, deadline_s: float) -> None:
    """Connect to the watcher, if there is one: from now on it knows when this process is stopped or lost."""
    global _line
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(_ANSWERING_S)
        connection.connect(address)
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        is_watched = user == os.getuid() and connection.recv(64) == watcher.WATCHING
    except OSError:
        is_watched = False
    if not is_watched:  # nobody is there, another user took the name, or the watcher has all of its ranks
        connection.close()
        return
    connection.settimeout(None)
    _line = connection.detach()
    rename(name, deadline_s)
    _end_at_once_by_signal()
    threading.Thread(target=_obey, args=(_line,), name="fleet_mpi lifeline", daemon=True).start()


def is_connected() -> bool:
    """Whether a watcher looks after this process."""
    return _line >= 0


def rename(name: str, deadline_s: float) -> None:
    """Send this process's display name and its deadline to the watcher."""
    _tell("name", name, deadline_s)


@contextlib.contextmanager
def phase(what: str, seconds: float) -> Iterator[None]:
    """Announce a phase in which no Python code may run; the watcher ends the job if it lasts too long."""
    _tell("phase", what, seconds)
    try:
        yield
    finally:
        # What is told outlives a rank that is killed before the watcher comes to look.
        for path in watcher.segments("self") if _line >= 0 else ():
            _tell("segment", path, 0)
        _tell("phase", "", 0)


def say_reported() -> None:
    """Report that this process exits and has printed the cause itself."""
    _tell("bye", "reported", 0)


def say_bye_at_exit(code: int = 0) -> None:
    """Let the watcher know when this process ends in order, with this exit code: after MPI_Finalize, and not if it is
    killed in there or leaves by os._exit. No Python code runs so late, but C's exit writes what its streams hold."""
    global _stream
    if _line >= 0 and _stream is None:
        library, words = ctypes.CDLL(None), f"bye\tin order\t{code}".encode()
        library.fdopen.restype = ctypes.c_void_p
        _stream = ctypes.c_void_p(library.fdopen(_line, b"w"))
        library.fwrite(words, ctypes.c_size_t(1), ctypes.c_size_t(len(words)), _stream)


def _tell(kind: str, text: str, number: float) -> None:
    if _line >= 0:
        with contextlib.suppress(OSError):  # without the watcher, deadlines remain
            os.write(_line, f"{kind}\t{text}\t{number}".encode())


def _obey(line: int) -> None:
    """In a thread: flush what the script has written, and end with the code that the watcher sends, if it is not 0."""
    with contextlib.suppress(OSError):
        order = os.read(line, 64)
        if order.startswith(b"end\t"):
            for name in ("stdout", "stderr"):
                with contextlib.suppress(Exception):  # closed, or gone
                    getattr(sys, name).flush()
            if int(order[4:]):
                os._exit(int(order[4:]))


def _end_at_once_by_signal() -> None:
    """Let the watcher end this process where Python cannot run: the signal's number is the argument of C's _exit."""
    library = ctypes.CDLL(None)
    library.signal.argtypes, library.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    library.signal(watcher.END_AT_ONCE, ctypes.cast(library._exit, ctypes.c_void_p))


def _forget() -> None:
    """Disconnect a forked child: the watcher must not treat it as a rank."""
    global _line, _stream
    if _stream is not None:
        ctypes.CDLL(None).__fpurge(_stream)
    if _line >= 0:
        os.close(_line)
        signal.signal(watcher.END_AT_ONCE, signal.SIG_DFL)
    _line, _stream = -1, None


os.register_at_fork(after_in_child=_forget)
