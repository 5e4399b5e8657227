"""``python -m fleet_mpi names install|remove|status``: whether plain Python's ``import paddle`` finds this package.

What is installed is one .pth file with the path of ``fleet_mpi/names``, so that nothing runs when an interpreter starts
and a file that outlives the package is ignored. Asks a fresh interpreter what it finds, never this one.
"""

from __future__ import annotations

import argparse
import json
import os
import site
import subprocess
import sys
import sysconfig
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.command_line import CommandLine
from fleet_mpi.errors import EnvironmentProblem, FleetError
from fleet_mpi.names import paddle as on_path

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = "fleet_mpi_names.pth"
ABOUT = """Lets plain Python run scripts that import paddle: mpirun -np 4 python train.py.
Never shadows a paddle that is installed; for that, python -m fleet_mpi train.py."""
_WITHOUT = f"without a file: export PYTHONPATH={on_path.FOLDER}, or python -m fleet_mpi train.py"
_ASKING_S = 60
_QUESTION = """
import importlib.util, json
found = importlib.util.find_spec("paddle")
try:
    from fleet_mpi.names import paddle
    real = paddle.installed()
    print(json.dumps([True, found is not None, real.origin if real else ""]))
except ModuleNotFoundError:
    print(json.dumps([False, found is not None, ""]))
"""


class Seen(NamedTuple):
    """What an interpreter of this environment finds: this package, any ``paddle``, the path of one that is not ours."""

    package: bool
    paddle: bool
    installed: str


def main(argv: Sequence[str]) -> int:
    """Install, remove or look at the names; returns the exit code."""
    parser = CommandLine(prog="python -m fleet_mpi names", description=ABOUT,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(_COMMANDS),
                        help="status ends with 0 where import paddle finds fleet_mpi, else 1")
    parser.add_argument("--user", action="store_true", help="install for this user, in every environment that sees the "
                                                            "user's site folder")
    asked = parser.parse_args(argv)
    try:
        code, text = _COMMANDS[asked.what](asked.user)
    except FleetError as error:
        sys.stderr.write(f"fleet_mpi: {type(error).__name__}: {error}\n")
        return error.exit_code
    sys.stdout.write(text + "\n")
    return code


def _install(user: bool) -> tuple[int, str]:
    seen = _look()
    if seen.installed:
        raise EnvironmentProblem(f"names install: a paddle is installed in this environment ({seen.installed}), and "
                                 f"the names never shadow one; python -m fleet_mpi train.py does")
    if not seen.package:
        raise EnvironmentProblem("names install: fleet_mpi was found in the current folder only, a script elsewhere "
                                 "would not find it; install it first: pip install -e .")
    path = os.path.join(_folder(user), FILE)
    try:
        _write(path, _line(os.path.dirname(path)) + "\n")
    except OSError as error:
        raise EnvironmentProblem(f"names install: {path} cannot be written ({error.strerror}); {_for_user()}{_WITHOUT}"
                                 ) from None
    if not _look().paddle:
        raise EnvironmentProblem(f"names install: {path} is written, but this Python does not read it (python -S, or a "
                                 f"site folder that it does not look at); {_WITHOUT}")
    return 0, f"installed: {path}; import paddle finds fleet_mpi in this environment"


def _write(path: str, text: str) -> None:
    """Write a temporary file and rename it, so that a starting interpreter reads the whole file or none."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{FILE}.")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(new, 0o644)  # for all who use this environment
    os.replace(new, path)


def _remove(user: bool) -> tuple[int, str]:
    found = _files()
    for path in found:
        try:
            os.remove(path)
        except OSError as error:
            raise EnvironmentProblem(f"names remove: {path} cannot be removed ({error.strerror})") from None
    return 0, "removed: " + ", ".join(found) if found else f"nothing to remove: no {FILE} in this environment"


def _status(user: bool) -> tuple[int, str]:
    seen, where = _look(), ", ".join(_files())
    state = f"installed: {where}" if where else "not installed"
    if seen.installed:
        return 1, f"{state}; import paddle finds the paddle that is installed, {seen.installed}"
    if seen.paddle and seen.package:
        return 0, f"{state}; import paddle finds fleet_mpi" + ("" if where else " (by PYTHONPATH)")
    return 1, f"{state}; import paddle fails" + (f": the file names {_named(where)}, install again" if where else "")


_COMMANDS = {"install": _install, "remove": _remove, "status": _status}


def _look() -> Seen:
    # From a folder without modules: what lies in the current one, a script elsewhere does not see.
    said = subprocess.run([sys.executable, "-c", _QUESTION], cwd=os.sep, stdout=subprocess.PIPE, text=True, check=True,
                          timeout=_ASKING_S)
    return Seen(*json.loads(said.stdout))


def _folder(user: bool) -> str:
    """The site folder of this environment, or the user's where --user says so or where this package lies there."""
    own = os.path.dirname(os.path.dirname(on_path.FOLDER))
    if user and not site.ENABLE_USER_SITE:
        raise EnvironmentProblem("names install --user: this Python does not look at the user's site folder (a virtual "
                                 "environment, or PYTHONNOUSERSITE); leave --user out")
    if user or (site.ENABLE_USER_SITE and os.path.realpath(own) == os.path.realpath(site.getusersitepackages())):
        return site.getusersitepackages()
    return sysconfig.get_path("purelib")


def _files() -> list[str]:
    """Where the file is, of all folders that it may be in."""
    folders = [sysconfig.get_path("purelib"), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return [path for path in (os.path.join(folder, FILE) for folder in folders) if os.path.lexists(path)]


def _line(folder: str) -> str:
    """The path in the file: relative where the package lies in the same folder, so that both can move."""
    inside = os.path.relpath(os.path.realpath(on_path.FOLDER), os.path.realpath(folder))
    return on_path.FOLDER if inside.startswith(os.pardir) else inside


def _named(path: str) -> str:
    try:
        with open(path) as file:
            return repr(file.read().strip())
    except OSError as error:
        return f"nothing ({error.strerror})"


def _for_user() -> str:
    return "for this user alone: add --user; " if site.ENABLE_USER_SITE else ""
