"""Shared by the tests of what runs beside a rank."""

import os
import subprocess
import sys

import pytest

from fleet_mpi.launch import notes, watched


@pytest.fixture
def start(tmp_path):
    """Start a watcher over a Python program; its rank is 2, its notes go to tmp_path."""
    started = []

    def start(code, command=None, program=None, close_fds=True, **more):
        environ = {**os.environ, "PMI_RANK": "2", notes.FOLDER: str(tmp_path), **more}
        environ.pop("OMPI_COMM_WORLD_RANK", None)
        words = [sys.executable, "-I", "-S", watched.__file__, *(command or [sys.executable, "-c", code])]
        started.append(subprocess.Popen(program or words, env=environ, close_fds=close_fds, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.communicate()
