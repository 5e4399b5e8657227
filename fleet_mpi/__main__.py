"""``python -m fleet_mpi train.py args...`` (or ``-m module args...``): run a script with paddle's names.

The script's file stays as it is; ``paddle``, ``paddle.fluid`` and the like are this package. An error that
ends the script is shown without this package's own frames (FLEET_MPI_LOG=debug: with them), and its kind gives the
exit code.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.command_line import CommandLine
from fleet_mpi.errors import FleetError
from fleet_mpi.paddle.standing_in import named_in, stand_in
from fleet_mpi.ranks import cluster, devices, ending, report

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = "python -m fleet_mpi SCRIPT.py [ARGS...]\n       python -m fleet_mpi -m MODULE [ARGS...]\n" \
        "       python -m fleet_mpi plan --help\n       python -m fleet_mpi doctor --help\n" \
        "       python -m fleet_mpi gpu-check --help\n       python -m fleet_mpi names --help\n" \
        "       python -m fleet_mpi export --help"
ABOUT = """Runs a training script written for paddle.fluid (1.x) or paddle (2.x) on fleet_mpi, unchanged.
Under MPI: mpirun -np N python -m fleet_mpi SCRIPT.py"""

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_EXAMPLES = os.path.join(_PACKAGE, "examples", "")


class FileProblem(FleetError):
    """The command line names nothing that can be run."""

    exit_code = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line names; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help", "--version"):
        return _help(*argv[:1])
    if argv[0] in ("plan", "doctor", "gpu-check", "names", "export") and not os.path.isfile(argv[0]):
        return _command(argv[0])(argv[1:])
    ending.show_by(_show_failure)
    report.promise_to_end(unless=ending.is_guarding)
    cluster.guard_if_launched()
    devices.export_own()
    stand_in()
    try:
        _run_module(argv[1:]) if argv[0] == "-m" else _run_script(argv)
    except FleetError as error:
        return show(error)
    except ImportError as error:
        unknown = named_in(error)
        if unknown is None:
            raise
        return show(unknown.with_traceback(error.__traceback__))
    except ending.LEAVING as error:
        ending.remember(error.code)
        raise
    return 0


def _help(asked=""):
    parser = CommandLine(usage=USAGE, description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    if asked:
        parser.parse_args([asked])  # ends the process
    parser.print_usage(sys.stderr)
    return FileProblem.exit_code


def _command(name):
    # Imported here, since no script should wait for what only a command needs.
    if name == "plan":
        from fleet_mpi.launch import plan_command as command
    elif name == "names":
        from fleet_mpi.launch import names_command as command
    elif name == "export":
        from fleet_mpi.launch import export_command as command
    elif name == "gpu-check":
        from fleet_mpi.launch import gpu_check as command
    else:
        from fleet_mpi.launch import doctor as command
    return command.main


def _run_script(argv):
    if not os.path.isfile(argv[0]):
        raise FileProblem(f"no script {argv[0]!r} (in {os.getcwd()}); python -m fleet_mpi --help")
    sys.argv = argv
    sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
    runpy.run_path(argv[0], run_name="__main__")


def _run_module(argv):
    if not argv:
        raise FileProblem("-m needs a module name; python -m fleet_mpi --help")
    sys.argv = argv
    sys.path.insert(0, os.getcwd())
    runpy.run_module(argv[0], run_name="__main__", alter_sys=True)


def show(error: BaseException) -> int:
    """Write an error to stderr: the script's own lines that led to it, then its sentence; a job ends with it.

    Returns the exit code where this process is alone.
    """
    return ending.fail(error, lambda: _show_lines(error))


def _show_lines(error):
    frames = traceback.extract_tb(_own_lines(error.__traceback__))
    if frames:
        sys.stderr.write("Traceback (the script's own lines):\n" + "".join(traceback.format_list(frames)))


def _show_failure(kind, error, trace):
    """An excepthook for what is no error of this package: Python's own text, with the script's lines only."""
    if settings.get("FLEET_MPI_LOG").lower() != "debug":
        _leave_out(error, set())
    sys.__excepthook__(kind, error, error.__traceback__)


def _leave_out(error, seen):
    """Take the lines of this package and of ``runpy`` out of an exception and of those that led to it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _own_lines(error.__traceback__)
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        _leave_out(other, seen)


def _own_lines(trace):
    """A traceback without the lines of this package (but its examples) and of ``runpy``."""
    kept = []
    while trace is not None:
        kept += [trace] if _is_own(trace.tb_frame.f_code.co_filename) else []
        trace = trace.tb_next
    for one in reversed(kept):
        trace = TracebackType(trace, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return trace


def _is_own(file):
    if file.startswith("<frozen") or os.path.basename(file) == "runpy.py":
        return False
    return not file.startswith(_PACKAGE) or file.startswith(_EXAMPLES)


if __name__ == "__main__":
    sys.exit(main())
