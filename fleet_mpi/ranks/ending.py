"""How a process of a job ends: a failure takes all ranks down with one sentence, an end in order says goodbye first.

Left alone, MPI hangs when one rank raises or exits with a code: the others wait for it, and it waits in
MPI_Finalize for them. So exceptions (of threads too) and exit codes are watched and end in ``abort``.
Knows no MPI: ``abort(code)`` is handed in, None where the process is alone.

The interpreter tells nobody with which code it ends, so ``SystemExit`` and the functions that raise it are replaced
by ones that note it. ``os._exit`` and signals are seen by the launcher only.
"""

import atexit
import builtins
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn

from fleet_mpi.errors import FleetError
from fleet_mpi.ranks import lifeline, report

LEAVING = SystemExit  # Python's own, of which the one that scripts see from ``guard`` on is a kind
_INTERRUPTED = 130  # as a shell counts SIGINT
_REPORTED_BY_PEER_S = 2
_READING_S = 0.2
_ABORTING_S = 10


class _Watch:
    """What this process's ending needs to know; one per process."""

    def __init__(self) -> None:
        self.hooked = False
        self.abort: Callable[[int], None] | None = None
        self.name: Callable[[], str] = lambda: ""
        self.code = 0
        self.amid = ""   # what the process leaves half done, though with code 0
        self.agreed = 0
        self.failing = False
        self.before: dict[str, Callable[..., Any]] = {}
        self.replaced: list[tuple[dict[str, Any], str, Any]] = []
        self.exit_callbacks: list[Callable[[], object]] = []


_watch = _Watch()


def guard(abort: Callable[[int], None] | None, name: Callable[[], str]) -> None:
    """Watch exceptions and exit codes from now on; may be called again with another ``abort``.

    ``abort(code)`` ends all ranks and does not return; None: this process is alone, and only the exit code
    of this package's errors is seen to. ``name()`` says who this is: rank, role, host, step.
    """
    _watch.abort, _watch.name = abort, name
    if not _watch.hooked:
        _watch.hooked = True
        _watch.before["excepthook"] = sys.excepthook
        sys.excepthook = _main_failed
    if abort is not None and "threads" not in _watch.before:
        _watch.before["threads"] = threading.excepthook
        threading.excepthook = _thread_failed
        _replace_exits()
        atexit.register(_at_end)


def show_by(hook: Callable[..., Any]) -> None:
    """Show exceptions by ``hook`` instead of Python's excepthook; may be called before or after ``guard``."""
    if _watch.hooked:
        _watch.before["excepthook"] = hook
    else:
        sys.excepthook = hook


def is_guarding() -> bool:
    """Whether exits of this process are guarded, as those of one of several ranks are."""
    return _watch.abort is not None


def release() -> None:
    """Remove all hooks: for tests, and for processes that run several jobs and handle failures themselves."""
    sys.excepthook = _watch.before.get("excepthook", sys.excepthook)
    threading.excepthook = _watch.before.get("threads", threading.excepthook)
    for names, name, before in _watch.replaced:
        names[name] = before
    atexit.unregister(_at_end)
    _watch.__init__()  # type: ignore[misc]  # nobody derives from it


def at_exit(callback: Callable[[], object]) -> None:
    """Register a callback for a normal exit, before MPI_Finalize; last in, first out."""
    _watch.exit_callbacks.append(callback)
    if _watch.abort is None:
        atexit.unregister(_at_end)
        atexit.register(_at_end)


def agree(code: int) -> None:
    """Declare an exit code on which all ranks agreed: a rank that exits with it has not failed."""
    _watch.agreed = code


@contextmanager
def amid(what: str) -> Iterator[None]:
    """Treat an exit with code 0 within the block as a failure, since ``what`` would be incomplete."""
    try:
        yield
    except LEAVING as error:
        error.amid = getattr(error, "amid", what)  # type: ignore[attr-defined]
        raise


def remember(code: object, amid: str = "") -> None:
    """Note what SystemExit carries: a process that ends with it has failed unless it is None, 0 or agreed on.

    ``amid`` is what it left half done.
    """
    number = exit_code(code)
    _watch.code = 0 if number == _watch.agreed else number
    _watch.amid = "" if number else amid


def exit_code(code: object) -> int:
    """The number the system gets for what SystemExit carries."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def sentence(error: str | BaseException) -> str:
    """One line that says who failed and why."""
    name = _watch.name()
    cause = error if isinstance(error, str) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"fleet_mpi: {name}: {cause}\n" if name else f"fleet_mpi: {cause}\n"


def fail(error: BaseException, show: Callable[[], object]) -> int:
    """Show the error, then its sentence, and end the job; returns the exit code where this process is alone."""
    _watch.failing = True
    if getattr(error, "reported_by_peer", False):
        # All ranks found the same fault in the same table: one sentence is enough, if the first comes to say it.
        time.sleep(_REPORTED_BY_PEER_S)
    show()
    sys.stderr.write(sentence(error))
    code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    if isinstance(error, FleetError):
        code = error.exit_code
    stop(code)
    return code


def stop(code: int) -> None:
    """End all ranks with this code, after everything written so far; returns where this process is alone."""
    report.tell(report.FAILS)
    for name in ("stdout", "stderr"):  # what the script printed must not be lost with the process
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed, or gone: the job must end all the same
    if _watch.abort is not None:
        lifeline.say_reported()
        # A launcher drops what it has not yet read from a rank's pipe when it ends the job.
        time.sleep(_READING_S)
        _watch.abort(code)
        # MPICH's Abort returns, and the launcher's signal is on its way: nothing else may run until then.
        time.sleep(_ABORTING_S)
        os._exit(code)


def _main_failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    before = _watch.before["excepthook"]
    if _watch.abort is not None:
        fail(error, lambda: before(kind, error, trace))
    before(kind, error, trace)
    if isinstance(error, FleetError):
        # The interpreter ends with 1 after an exception, but takes the code of a SystemExit raised by the hook.
        raise SystemExit(error.exit_code)


def _thread_failed(failed: Any) -> None:
    if issubclass(failed.exc_type, LEAVING):
        return  # the end of a thread is not the end of a job
    fail(failed.exc_value, lambda: _watch.before["threads"](failed))


class _Exit(SystemExit):
    """A SystemExit that notices when the interpreter, and no Python code, asks for its code: the process does end.

    One that the script catches leaves no trace.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._code = args[0] if len(args) == 1 else args or None

    @property
    def code(self) -> Any:
        """What ``exit`` was given."""
        if sys._getframe().f_back is None:
            remember(self._code, getattr(self, "amid", ""))
        return self._code

    @code.setter
    def code(self, code: Any) -> None:
        self._code = code


_Exit.__name__ = _Exit.__qualname__ = "SystemExit"
_Exit.__module__ = "builtins"


def _exit(code: Any = None) -> NoReturn:
    """sys.exit, exit and quit: leave the program by SystemExit."""
    raise _Exit(code)


def _replace_exits() -> None:
    """Let whatever raises SystemExit raise ours, also where ``from sys import exit`` came before."""
    for name, ours in (("exit", _exit), ("quit", _exit), ("SystemExit", _Exit)):
        _replace(vars(builtins), name, ours)
    original = sys.exit
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name in [name for name, value in list(names.items()) if value is original]:
            _replace(names, name, _exit)


def _replace(names: dict[str, Any], name: str, ours: Any) -> None:
    if name in names:  # ``python -S`` has no exit and quit
        _watch.replaced.append((names, name, names[name]))
        names[name] = ours


def _at_end() -> None:
    """Run the exit callbacks after a normal end; end the job after a failure."""
    if _watch.failing and _watch.abort is not None:
        time.sleep(_ABORTING_S)  # a thread has failed and is about to end the job
    if _watch.amid and _watch.abort is not None:
        sys.stderr.write(sentence(f"left in the middle of {_watch.amid} with exit code 0"))
        stop(1)
    if _watch.code and _watch.abort is not None:
        sys.stderr.write(sentence(f"exit code {_watch.code}"))
        stop(_watch.code)
    unhandled = getattr(sys, "last_value", None)
    if unhandled is not None and sys.excepthook is not _main_failed and _watch.abort is not None:
        fail(unhandled, lambda: None)  # a hook of the script's own has shown it
    while _watch.exit_callbacks:
        callback = _watch.exit_callbacks.pop()
        try:
            callback()
        except BaseException as error:
            fail(error, functools.partial(sys.__excepthook__, type(error), error, error.__traceback__))
    report.tell(report.ENDS)
    lifeline.say_bye_at_exit(_watch.agreed)


# A process that a script forks off is no rank: its end is not the job's.
os.register_at_fork(after_in_child=release)
