"""Where no folder can be written to, kernels are compiled into one of this user's alone, and one line says so."""

import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import fleet_mpi
from fleet_mpi import settings
from fleet_mpi.kernels.numba import cache_folder

PACKAGE = Path(fleet_mpi.__file__).parent
# As root file modes do not bind: the copy is mounted over itself, read-only, for this process alone.
MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
KERNEL = """
import numpy as np
import fleet_mpi.kernels.numba.elementary as some
print(some._exp32(np.float32(0.0)), some._exp32.stats.cache_path, sum(some._exp32.stats.cache_hits.values()))
"""


def changed(module, **names):
    """A module's names, some of them others; the module itself is pytest's too."""
    return SimpleNamespace(**{**vars(module), **names})


@pytest.fixture
def choose(monkeypatch, tmp_path):
    """Choose a folder below ``tmp_path``; what was registered for the end comes with it."""
    monkeypatch.setattr(cache_folder, "tempfile", changed(tempfile, gettempdir=lambda: str(tmp_path),
                                                          mkdtemp=functools.partial(tempfile.mkdtemp, dir=tmp_path)))
    ends = []
    monkeypatch.setattr(cache_folder, "atexit", SimpleNamespace(register=lambda *call: ends.append(call)))

    def choose():
        cache_folder.temporary_folder.cache_clear()
        return cache_folder.temporary_folder(), ends
    yield choose
    cache_folder.temporary_folder.cache_clear()


def test_the_folder_is_this_users_alone_and_the_same_for_all_its_processes(choose, tmp_path, capfd):
    shared = str(tmp_path / f"fleet_mpi-{os.geteuid()}")
    assert choose() == choose() == (shared, [])
    assert stat.S_IMODE(os.stat(shared).st_mode) == 0o700
    assert capfd.readouterr().err.splitlines()[0] == (
        f"fleet_mpi: no folder for compiled kernels can be written to (NUMBA_CACHE_DIR, the package's own, ~/.cache): "
        f"they are kept in {shared}; export NUMBA_CACHE_DIR=FOLDER chooses another")


def test_one_rank_of_a_machine_says_so(choose, capfd):
    with settings.override(OMPI_COMM_WORLD_LOCAL_RANK=1):
        choose()
    assert capfd.readouterr().err == ""


def opened(path):
    path.mkdir()
    path.chmod(0o755)


def linked(path):
    elsewhere = path.with_name("elsewhere")
    elsewhere.mkdir(0o700)
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("taken", (opened, linked, Path.touch), ids=("others may enter", "a link", "a file"))
def test_a_name_that_is_taken_is_not_trusted_and_an_own_folder_ends_with_its_process(choose, taken, tmp_path):
    shared = tmp_path / f"fleet_mpi-{os.geteuid()}"
    taken(shared)
    folder, ((remove, *arguments),) = choose()
    assert Path(folder).parent == tmp_path and folder != str(shared)
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    remove(folder, os.getpid() + 1)
    assert os.path.isdir(folder)  # a forked process leaves it alone
    remove(*arguments)
    assert not os.path.exists(folder)


def test_a_folder_of_another_user_is_not_trusted(choose, tmp_path, monkeypatch):
    me = os.geteuid() + 1
    monkeypatch.setattr(cache_folder, "os", changed(os, geteuid=lambda: me))
    (tmp_path / f"fleet_mpi-{me}").mkdir(0o700)
    folder, ends = choose()
    assert ends and os.path.basename(folder) != f"fleet_mpi-{me}"


def test_without_any_folder_every_rank_compiles(choose, monkeypatch, capfd):
    def nowhere():
        raise FileNotFoundError("No usable temporary directory found")
    monkeypatch.setattr(cache_folder, "tempfile", changed(tempfile, gettempdir=nowhere))
    assert choose() == (None, [])
    assert "every rank compiles them anew; export NUMBA_CACHE_DIR" in capfd.readouterr().err


@pytest.fixture
def read_only(tmp_path):
    """Run a program with a copy of this package, and a home, that cannot be written to."""
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "fleet_mpi", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tmp").mkdir()
    wrapped = ["unshare", "--mount", "sh", "-c", MOUNTED, str(copy)] if os.geteuid() == 0 else []
    if wrapped and subprocess.run([*wrapped, "true"], capture_output=True).returncode:
        pytest.skip("root without the right to mount")
    copy.chmod(0o555 if not wrapped else 0o755)
    for folder in copy.rglob("*") if not wrapped else ():
        folder.chmod(0o555)
    environ = {"PATH": os.environ["PATH"], "HOME": str(copy), "PYTHONPATH": str(copy), "TMPDIR": str(tmp_path / "tmp")}

    def run(code, **variables):
        ended = subprocess.run([*wrapped, sys.executable, "-c", code], env={**environ, **variables},
                               capture_output=True,
                               text=True, timeout=120, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.split(), ended.stderr
    yield run
    for folder in [copy, *copy.rglob("*")] if not wrapped else ():
        folder.chmod(0o755)


def test_a_read_only_package_and_home_compile_once_into_the_temporary_folder(read_only, tmp_path):
    (value, folder, found), said = read_only(KERNEL)
    assert (value, found) == ("1.0", "0") and folder.startswith(f"{tmp_path}/tmp/fleet_mpi-{os.geteuid()}/")
    assert said.count("\n") == 1 and "export NUMBA_CACHE_DIR=FOLDER" in said
    (value, again, found), said = read_only(KERNEL, MPI_LOCALRANKID="1")
    assert (again, found, said) == (folder, "1", "")
    _, said = read_only(KERNEL, NUMBA_CACHE_DIR=str(tmp_path / "cure"))
    assert said == ""
