"""Workers of a job that save into one folder leave one save there, whole, whoever of them is killed meanwhile."""

import itertools
import os
import time

import numpy as np
import pytest

from fleet_mpi.checkpoint.folders import manifest, parts
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.folders.transaction import Author, saving_into
from tests.unit.checkpoint.killing import Killer, calls_of

NAMES = "one", "two", "own"
SHARED = np.arange(6.0)


def save(folder, author, names=NAMES, shared=SHARED, note=True):
    """A save in which every file has the worker's number."""
    with saving_into(folder, author) as made:
        for name in names:
            with made.open(name) as stream:
                stream.write(b"%d" % author.worker)
        made.has(shared)
        if note:
            made.note("runs", step=author.step)


def written(folder):
    """The workers whose files are there, by name, and that nothing is damaged."""
    files = SavedFiles(folder)
    return {name: int(files.read(name)) for name in NAMES if files.has(name)}


def of(worker, job="a", step=3):
    return Author(job, step, worker)


@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
def test_of_saves_of_one_state_the_lowest_workers_counts_whichever_comes_first(tmp_path, order):
    for worker in order:
        save(tmp_path, of(worker))
    assert written(tmp_path) == dict.fromkeys(NAMES, 0)
    assert sorted(os.listdir(tmp_path)) == sorted([manifest.NAME, *NAMES])


@pytest.mark.parametrize("second, how", (
    (of(1, job="b"), {}), (of(1, step=4), {}), (of(1), {"shared": SHARED + 1}), (of(0), {}),
    (of(1), {"names": (*NAMES, "more")})))
def test_any_other_save_is_written(tmp_path, second, how):
    save(tmp_path, of(0))
    before = SavedFiles(tmp_path).manifest.files["one"].save
    save(tmp_path, second, **how)
    assert written(tmp_path) == dict.fromkeys(NAMES, second.worker)
    assert SavedFiles(tmp_path).manifest.files["one"].save != before


def test_what_a_lower_workers_save_did_not_note_is_noted(tmp_path):
    save(tmp_path, of(0), note=False)
    save(tmp_path, of(1))
    assert written(tmp_path) == dict.fromkeys(NAMES, 1) and "runs" in SavedFiles(tmp_path).manifest.notes


def test_authors_of_saves_that_nothing_is_left_of_are_forgotten(tmp_path):
    for step in range(5):
        save(tmp_path, of(0, step=step))
    save(tmp_path, of(1, step=9), names=("own",))
    authors = [words["step"] for key, words in SavedFiles(tmp_path).manifest.notes.items()
               if key.startswith("author of ")]
    assert sorted(authors) == [4, 9]


def test_each_worker_has_a_folder_of_its_own(tmp_path):
    for worker in (0, 1):
        save(tmp_path / str(worker), of(worker))
    assert [written(tmp_path / str(worker))["own"] for worker in (0, 1)] == [0, 1]


def forked(work):
    """Do some work in another process; its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return child


@pytest.mark.parametrize("victim", (0, 1))
def test_two_workers_that_save_at_once_leave_one_whole_save_whenever_one_is_killed(tmp_path, victim):
    other = 1 - victim
    calls, seen = calls_of(lambda: save(tmp_path / "count", of(victim))), set()
    for at in range(1, calls + 1):
        folder = tmp_path / str(at)
        save(folder, of(7, step=1))

        def killed():
            Killer(at).watch()
            save(folder, of(victim))
        children = [forked(killed), forked(lambda: save(folder, of(other)))]
        codes = [os.waitpid(child, 0)[1] for child in children]
        assert codes[1] == 0, f"the other worker could not save beside one that was killed at call {at}"
        found = set(written(folder).values())
        assert found in ({victim}, {other}), f"killed at call {at} of {calls}: {found}"
        # The one that was not killed has saved; only a lower worker's save of the same state may stand in its place.
        assert found == {other} or victim == 0
        seen |= found
        save(folder, of(5, step=9))
        assert sorted(os.listdir(folder)) == sorted([manifest.NAME, *NAMES])
    assert other in seen and calls > 8


def test_where_folders_cannot_be_locked_a_file_in_them_is(tmp_path, monkeypatch):
    flock = parts.fcntl.flock

    def refusing_folders(handle, how):
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(9, "Bad file descriptor")   # as NFS does
        return flock(handle, how)
    monkeypatch.setattr(parts.fcntl, "flock", refusing_folders)

    def slow():
        with parts.alone_in(tmp_path):
            (tmp_path / "in").touch()
            time.sleep(0.2)
            (tmp_path / "in").unlink()
    child = forked(slow)
    while not (tmp_path / "in").exists():
        time.sleep(0.001)
    with parts.alone_in(tmp_path):
        assert not (tmp_path / "in").exists()
    assert os.waitpid(child, 0)[1] == 0 and (tmp_path / parts.LOCK).exists()
