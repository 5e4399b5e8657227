"""Every sentence of CONTRIBUTING.rst that a machine can check: its commands, and the files it names."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.rst").read_text()
COMMANDS = re.findall(r"^    (python -m (?:pytest|tests).*)$", PAGE, re.M)
# What makes a command read its arguments and find its tests, without running them.
WITHOUT_RUNNING = {"pytest": ["--collect-only", "-q"], "tests.golden": ["--help"]}
# Of a command for the whole suite: to find all tests takes long, and every run of the suite shows it.
A_PART = ["tests/unit/test_errors.py", "tests/mpi/test_launcher.py"]


def test_files_and_folders_that_are_named_exist():
    named = set(re.findall(r"``((?:fleet_mpi|tests|benchmarks)/[\w/.]+)``", PAGE))
    assert len(named) > 15
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command):
    _, _, module, *words = shlex.split(command)
    if module == "pytest" and not any(word.startswith("tests/") for word in words):
        words += A_PART
    ended = subprocess.run([sys.executable, "-m", module, *words, *WITHOUT_RUNNING[module]], cwd=ROOT,
                           capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr


def test_there_are_commands_for_suite_and_net():
    assert {shlex.split(command)[2] for command in COMMANDS} == set(WITHOUT_RUNNING)


def test_every_seam_has_its_row():
    for what in ("an op", "a layer", "an optimizer rule", "a mode", "a table", "a reducer", "a transport",
                 "a checkpoint format", "a launcher flag", "a setting", "a kind of error", "a benchmark"):
        assert re.search(rf"^{what}  ", PAGE, re.M), what
