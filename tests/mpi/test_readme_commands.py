"""The README's commands that start jobs run as they stand."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from fleet_mpi.launch.mpirun import environment, options
from tests.mpi.jobs import ROOT, clean_environment, mpirun

README = (ROOT / "README.rst").read_text()
BLOCKS = [re.sub(r"^    ", "", block, flags=re.M).strip().replace("\\\n", " ")
          for block in re.findall(r"\.\. code-block:: sh\n\n((?:    .*\n|\n)+)", README)]
# One script for each line that is a job; lines before it in its block belong to it.
COMMANDS = [(block.partition(line)[0] if "export" in block else "") + line
            for block in BLOCKS for line in block.splitlines() if not line.startswith("export")]


def test_there_are_commands_of_every_kind():
    assert len(COMMANDS) == 9 and {command.split()[0] for command in COMMANDS} == {"mpirun", "python", "fleetrun",
                                                                                   "export"}


@pytest.fixture
def shell(tmp_path):
    """Run a command where ``train.py`` is, with this environment's programs first in the path."""
    found, programs = mpirun(), tmp_path / "programs"
    programs.mkdir()
    needed = " ".join(options(found.family, 4, os.cpu_count()))
    for name, words in {"mpirun": f"{found.path} {needed}", "python": sys.executable,
                        "fleetrun": f"{sys.executable} -m fleet_mpi.launch"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(0o755)
    shutil.copy(ROOT / "tests" / "scripts" / "fleet_parameter_server.py", tmp_path / "train.py")
    env = clean_environment()
    env.update({**environment(found.family, env), "PATH": f"{programs}{os.pathsep}{env['PATH']}"})
    return lambda command: subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True,
                                          timeout=120, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_a_job_that_trains(command, shell):
    ended = shell(command)
    assert ended.returncode == 0, ended.stderr
    said = r"first=(\S+) last=(\S+)" if "train.py" in command else r"worker \d: pass \d+: |: converged|\[Epoch 0, "
    assert re.search(said, ended.stdout), ended.stdout
