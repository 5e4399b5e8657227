"""A file is replaced whole or not at all."""

import os
import stat

import pytest

from fleet_mpi.checkpoint.replacing import replacing, replacing_together


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


def test_files_replaced_together_appear_together(tmp_path):
    paths = [tmp_path / "one", tmp_path / "sub" / "two"]
    with replacing_together() as beside:
        for path in paths:
            with beside(path) as stream:
                stream.write(path.name.encode())
            assert not path.exists()
    assert [path.read_bytes() for path in paths] == [b"one", b"two"]
    assert sorted(os.listdir(tmp_path)) == ["one", "sub"]


@pytest.mark.parametrize("error", (OSError, KeyboardInterrupt))
def test_an_error_among_several_files_leaves_all_old_ones(tmp_path, error):
    (tmp_path / "one").write_bytes(b"old")
    with pytest.raises(error):
        with replacing_together() as beside:
            with beside(tmp_path / "one") as stream:
                stream.write(b"new")
            with beside(tmp_path / "two"):
                raise error
    assert (tmp_path / "one").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["one"]
