"""Kills a process right before its n-th call that changes files, whatever that call is and in whichever thread."""

import os
import signal
import sys
import threading

# What changes files, by the name of the C function. Not ``open``: to be killed before what follows it is the same.
CHANGES = {"write", "fsync", "replace", "rename", "mkdir", "rmdir", "unlink", "remove", "chmod", "link", "truncate"}
_MODULES = {"posix", "_io", "io"}


class Killer:
    """Counts calls, and at the one with number ``at`` ends the process; 0: never."""

    def __init__(self, at):
        self.at, self.count, self.lock = at, 0, threading.Lock()

    def watch(self):
        """From here on, in this thread and in those that begin."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def stop(self):
        """Watch no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _called(self, frame, event, function):
        if event == "c_call" and function.__name__ in CHANGES and _module(function) in _MODULES:
            with self.lock:
                self.count += 1
                if self.count == self.at:
                    _flush_half(function)
                    os.kill(os.getpid(), signal.SIGKILL)


def _module(function):
    return getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__


def _flush_half(function):
    """What was written so far may have reached the disk, and a part of what comes."""
    stream = getattr(function, "__self__", None)
    if function.__name__ == "write" and hasattr(stream, "fileno"):
        stream.write(b"half")
        stream.flush()


def calls_of(work):
    """How many calls that change files some work makes; it is done in this process."""
    killer = Killer(0)
    killer.watch()
    try:
        work()
    finally:
        killer.stop()
    return killer.count


def killed(work, at):
    """Do some work in a forked process that is killed at a call; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            Killer(at).watch()
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the work failed"
    return os.WIFSIGNALED(status)
