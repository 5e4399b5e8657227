"""Compiled kernels are kept on disk, and ranks that write there at the same time never read each other's code."""

import errno
import itertools
import os
import threading

import numba
import numpy as np

from fleet_mpi.kernels.numba import compiling as numba_settings, update as numba_update
from fleet_mpi.kernels.numba.compiling import SharedFiles, compiled

STEPS = ("_load_index", "_save_data", "_load_index", "_save_index")


class Turns:
    """Lets steps of several writers happen in a given order."""

    def __init__(self, order):
        self.order, self.done = list(order), 0
        self.moved = threading.Condition()

    def wait(self, who):
        """Until it is this writer's turn."""
        with self.moved:
            assert self.moved.wait_for(lambda: self.done >= len(self.order) or self.order[self.done] == who, 20)

    def over(self):
        """The step is done."""
        with self.moved:
            self.done += 1
            self.moved.notify_all()


def slowed(folder, who, turns):
    """Files whose every step waits for its turn."""
    files = SharedFiles(str(folder), "kernel-1.py3", "stamp")
    for name in set(STEPS):
        def step(*arguments, act=getattr(files, name)):
            turns.wait(who)
            try:
                return act(*arguments)
            finally:
                turns.over()
        setattr(files, name, step)
    return files


ORDERS = sorted(set(itertools.permutations("a" * len(STEPS) + "b" * len(STEPS))))[::3]


def test_two_ranks_that_save_at_the_same_time_do_not_mix_their_code(tmp_path):
    assert len(ORDERS) > 20
    for number, order in enumerate(ORDERS):
        folder = tmp_path / str(number)
        folder.mkdir()
        turns = Turns(order)
        writers = [threading.Thread(target=slowed(folder, who, turns).save, args=(f"key {who}", f"code {who}"))
                   for who in "ab"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(30)
        read = [SharedFiles(str(folder), "kernel-1.py3", "stamp").load(f"key {who}") for who in "ab"]
        assert read[0] in ("code a", None) and read[1] in ("code b", None), order
        assert read != [None, None], order


def test_code_of_an_older_source_is_not_read_and_goes(tmp_path):
    older, newer = (SharedFiles(str(tmp_path), "kernel-1.py3", stamp) for stamp in ("old", "new"))
    older.save("key", "old code")
    for path in tmp_path.glob("*.nbc"):
        os.utime(path, (0, 0))
    other = SharedFiles(str(tmp_path), "kernel-12.py3", "old")
    other.save("key", "other code")
    assert newer.load("key") is None
    newer.save("key", "new code")
    newer.save("key 2", "more code")
    assert (newer.load("key"), newer.load("key 2"), other.load("key")) == ("new code", "more code", "other code")
    assert len(list(tmp_path.glob("kernel-1.py3.*.nbc"))) == 2


def doubled(values):
    for i in range(values.size):
        values[i] *= 2


def test_kernels_use_these_files_and_find_their_code_again(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    first, second = compiled(doubled), compiled(doubled)
    assert type(first._cache._cache_file) is SharedFiles
    values = np.ones(3)
    first(values)
    second(values)
    assert values.tolist() == [4, 4, 4]
    assert sum(second.stats.cache_hits.values()) == 1 and not second.stats.cache_misses


def test_the_packages_kernels_are_made_here():
    kernels = [value for value in vars(numba_update).values() if hasattr(value, "_cache")]
    assert kernels and all(type(kernel._cache._cache_file) is SharedFiles for kernel in kernels)


def test_without_a_compiler_the_function_stays(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert compiled(doubled) is doubled


def test_code_that_cannot_be_kept_runs_all_the_same(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(SharedFiles, "_save_data", full)
    values = np.ones(3)
    compiled(doubled)(values)
    compiled(doubled)(values)
    assert values.tolist() == [4, 4, 4]
    assert [line.partition(" (")[2] for line in capfd.readouterr().err.splitlines()] == [
        "No space left on device): the next start compiles them again"]


def test_where_no_folder_can_be_written_to_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(numba_settings, "temporary_folder", lambda: None)

    def nowhere(*arguments):
        raise OSError(errno.EROFS, "Read-only file system")
    monkeypatch.setattr(numba.core.caching._CacheLocator, "ensure_cache_path", nowhere)
    kernel, values = compiled(doubled), np.ones(2)
    kernel(values)
    assert values.tolist() == [2, 2] and kernel.stats.cache_path is None
