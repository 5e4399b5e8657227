"""LocalFS: folders and files by path."""

import pytest

from fleet_mpi.checkpoint.folders.local_files import LocalFS
from fleet_mpi.errors import UsageError


@pytest.fixture
def fs():
    return LocalFS()


def test_folders_and_files_are_told_apart(tmp_path, fs):
    fs.mkdirs(tmp_path / "b" / "c")
    fs.mkdirs(tmp_path / "b")
    fs.touch(tmp_path / "a")
    assert fs.ls_dir(tmp_path) == (["b"], ["a"]) and fs.list_dirs(tmp_path) == ["b"]
    assert fs.ls_dir(tmp_path / "nowhere") == ([], [])
    assert fs.is_file(tmp_path / "a") and not fs.is_dir(tmp_path / "a") and fs.is_dir(tmp_path / "b")
    assert not fs.need_upload_download()


def test_touch_leaves_what_is_there(tmp_path, fs):
    (tmp_path / "a").write_text("words")
    fs.touch(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "words"


def test_what_is_deleted_is_gone_and_what_a_link_points_to_stays(tmp_path, fs):
    fs.mkdirs(tmp_path / "folder" / "inner")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    fs.delete(tmp_path / "link")
    assert fs.is_exist(tmp_path / "folder" / "inner") and not fs.is_exist(tmp_path / "link")
    fs.delete(tmp_path / "folder")
    fs.delete(tmp_path / "folder")
    assert not fs.stat(tmp_path / "folder")


def test_nothing_is_moved_over_what_is_there_unless_asked(tmp_path, fs):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    with pytest.raises(UsageError, match="old is there already; give overwrite=True"):
        fs.mv(tmp_path / "new", tmp_path / "old")
    fs.mv(tmp_path / "new", tmp_path / "old", overwrite=True)
    assert (tmp_path / "old" / "file").read_text() == "new"
    fs.rename(tmp_path / "old", tmp_path / "last")
    assert fs.list_dirs(tmp_path) == ["last"]
