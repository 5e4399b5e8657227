"""Segments of a job: known by the processes that have them mapped, and only those are removed."""

import os
import subprocess
import sys

import pytest

from fleet_mpi.launch import leftovers

pytestmark = pytest.mark.skipif(not os.path.isdir(leftovers.MEMORY), reason="no /dev/shm")

HOLDS = """
import mmap, os, subprocess, sys
if len(sys.argv) > 2:
    sys.exit(subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]]).returncode)
file = os.open(sys.argv[1], os.O_RDWR)
held = mmap.mmap(file, 4096)
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def segment():
    """A file in /dev/shm with a name like MPICH's, that belongs to this test."""
    name = f"mpich_shm_{os.getpid():x}{id(object()) & 0xffff:x}_0"
    path = os.path.join(leftovers.MEMORY, name)
    with open(path, "wb") as file:
        file.write(bytes(4096))
    yield name
    if os.path.exists(path):
        os.unlink(path)


def test_what_a_process_below_has_mapped_is_noted_and_swept_after_its_end(segment, tmp_path):
    path = os.path.join(leftovers.MEMORY, segment)
    above = subprocess.Popen([sys.executable, "-c", HOLDS, path, HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
    assert above.stdout.readline() == "up\n"
    assert leftovers.note(above.pid, tmp_path) == {segment}
    above.communicate("")
    assert leftovers.sweep(tmp_path) == [segment] and not os.path.exists(path)
    assert leftovers.sweep(tmp_path) == []


def test_a_segment_of_another_job_stays(segment, tmp_path):
    assert segment not in leftovers.note(os.getpid(), tmp_path)  # tests may have started MPI in this process
    leftovers.sweep(tmp_path)
    assert os.path.exists(os.path.join(leftovers.MEMORY, segment))


def test_notes_of_another_host_are_left_to_it(segment, tmp_path):
    (tmp_path / f"segment.{os.uname().nodename}x.{segment}").touch()
    assert leftovers.sweep(tmp_path) == []


def test_without_processes_and_folders_there_is_nothing():
    assert leftovers.segments(2 ** 22 + 1) == set() and leftovers.sweep("/nowhere/at/all") == []
