"""The commands of README.rst and docs/ that start jobs run as they stand, and the README's programs run as jobs."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from fleet_mpi.launch.mpirun import environment, options
from tests.documents import ROOT, blocks, skip_what_is_not_here
from tests.mpi.jobs import clean_environment, mpirun, run_job

# One script for each line that is a job; lines before it in its block belong to it. A line on two pages runs once.
COMMANDS = list(dict.fromkeys(
    (text.partition(line)[0] if "export" in text else "") + line
    for text in (block.text.replace("\\\n", " ") for block in blocks("sh"))
    for line in text.splitlines() if not line.startswith("export")))


def test_there_are_commands_of_every_kind():
    assert len(COMMANDS) == 11 and {command.split()[0] for command in COMMANDS} == {"mpirun", "python", "fleetrun",
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


@pytest.mark.parametrize("door, workers", (("paddle", 2), ("arrays", 3), ("torch", 3)))
def test_a_program_of_the_readme_runs_on_four_ranks(door, workers, tmp_path):
    code = blocks("python", "README.rst")[("paddle", "arrays", "torch").index(door)].text
    skip_what_is_not_here(code)
    (tmp_path / "train.py").write_text(code)
    ended = run_job(4, ["train.py"], cwd=tmp_path)
    assert ended.code == 0, ended.story()
    losses = [float(loss) for loss in re.findall(r"^loss (\S+)$", ended.out, re.M)]
    assert len(losses) == workers and max(losses) < 0.01, ended.story()
