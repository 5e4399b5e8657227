"""Versions of a training: whole folders by step, the newest found, old ones and rests removed."""

import os
from pathlib import Path

import pytest

from fleet_mpi.checkpoint.folders import versions
from fleet_mpi.errors import UsageError


def writer(text):
    """A writer of one file with this text."""
    return lambda path: Path(path, "w").write_text(text)


def test_the_newest_version_is_that_with_most_steps(tmp_path):
    assert versions.newest(tmp_path / "nothing") is None
    for step in (9, 100, 20):
        versions.save(tmp_path, step, writer(str(step)), keep=5)
    assert versions.newest(tmp_path) == (100, str(tmp_path / "step-100"))
    assert (tmp_path / "step-100" / "w").read_text() == "100"


def test_other_things_in_the_folder_are_no_versions_and_stay(tmp_path):
    for name in ("step-7x", "step-", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-9").write_text("a file")
    assert versions.newest(tmp_path) is None
    versions.save(tmp_path, 3, writer("3"))
    assert sorted(os.listdir(tmp_path)) == ["notes", "step-", "step-3", "step-7x", "step-9"]


def test_old_versions_go_and_the_last_stay(tmp_path):
    for step in (1, 2, 3, 4):
        versions.save(tmp_path, step, writer(str(step)))
    assert sorted(os.listdir(tmp_path)) == ["step-3", "step-4"]


def test_a_version_is_not_there_before_it_is_whole(tmp_path):
    seen = []
    versions.save(tmp_path, 5, lambda path: seen.append(versions.newest(tmp_path)))
    assert seen == [None] and versions.newest(tmp_path).step == 5


def test_a_writer_that_fails_leaves_what_was_there(tmp_path):
    versions.save(tmp_path, 1, writer("1"))
    with pytest.raises(OSError, match="disk full"):
        versions.save(tmp_path, 2, lambda path: (_ for _ in ()).throw(OSError("disk full")))
    assert os.listdir(tmp_path) == ["step-1"]


def test_what_a_killed_writer_left_goes_with_the_next_version(tmp_path):
    (tmp_path / f".step-4.{'0' * 16}.part").mkdir()
    versions.save(tmp_path, 5, writer("5"))
    assert os.listdir(tmp_path) == ["step-5"]


def test_a_version_that_is_there_stays_as_it_is(tmp_path):
    versions.save(tmp_path, 5, writer("first"))
    versions.save(tmp_path, 5, writer("second"))
    assert (tmp_path / "step-5" / "w").read_text() == "first"


def test_a_step_below_zero_is_refused(tmp_path):
    with pytest.raises(UsageError, match="step -1"):
        versions.save(tmp_path, -1, writer(""))
