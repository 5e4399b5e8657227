"""A file is replaced whole or not at all."""

import os
import stat

import pytest

from fleet_mpi.checkpoint.folders.replacing import replacing


def test_the_file_appears_whole_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "folder" / "weights"
    with replacing(path) as stream:
        stream.write(b"half")
        stream.flush()
        assert not path.exists()
        stream.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert os.listdir(path.parent) == ["weights"]


@pytest.mark.parametrize("error", (ValueError, KeyboardInterrupt))
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "weights"
    path.write_bytes(b"old")
    with pytest.raises(error):
        with replacing(path) as stream:
            stream.write(b"new")
            raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["weights"]


def test_a_rename_that_fails_leaves_nothing_behind(tmp_path):
    path = tmp_path / "weights"
    path.mkdir()
    with pytest.raises(OSError):
        with replacing(path) as stream:
            stream.write(b"new")
    assert os.listdir(tmp_path) == ["weights"]


def test_the_mode_of_the_old_file_stays(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as stream:
        stream.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    target, link = tmp_path / "step-7", tmp_path / "latest"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_the_content_reaches_the_disk_before_the_name(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync"))
    rename = os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("rename"), rename(*paths)))
    with replacing(tmp_path / "weights") as stream:
        stream.write(b"new")
    assert calls[:2] == ["fsync", "rename"]


def test_what_a_killed_writer_left_goes_with_the_next_write_and_what_is_in_work_stays(tmp_path):
    (tmp_path / f".weights.{'0' * 16}.part").write_bytes(b"half")
    with replacing(tmp_path / "weights") as stream:
        (living,) = set(os.listdir(tmp_path)) - {f".weights.{'0' * 16}.part"}
        with replacing(tmp_path / "weights") as second:
            second.write(b"second")
        assert sorted(os.listdir(tmp_path)) == sorted([living, "weights"])
        stream.write(b"first")
    assert os.listdir(tmp_path) == ["weights"] and (tmp_path / "weights").read_bytes() == b"first"
