"""Finding data files: where, under which names, and what is said when they are not as expected."""

import json
import os

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.data import home
from fleet_mpi.errors import EnvironmentProblem, UsageError

URL = "http://example.org/files/set%2Farchive.tgz"


def place(data_home, name, content=b"content"):
    (data_home / "set").mkdir(exist_ok=True)
    (data_home / "set" / name).write_bytes(content)


def test_data_home_is_the_setting_or_a_folder_of_the_user(tmp_path):
    with settings.override(DATA_HOME=str(tmp_path)):
        assert home.DATA_HOME == str(tmp_path)
    with settings.override(DATA_HOME=""):
        assert home.DATA_HOME == os.path.expanduser("~/.cache/paddle/dataset")


def test_a_script_may_assign_data_home(data_home, tmp_path, monkeypatch):
    monkeypatch.setitem(vars(home), "DATA_HOME", str(tmp_path / "other"))
    assert home.folder("set") == str(tmp_path / "other" / "set")


@pytest.mark.parametrize("name", ["set%2Farchive.tgz", "archive.tgz"])
def test_a_file_is_found_under_the_originals_and_its_plain_name(data_home, name):
    place(data_home, name)
    assert home.download(URL, "set", None) == str(data_home / "set" / name)


def test_a_given_save_name_is_the_only_name(data_home):
    place(data_home, "archive.tgz")
    assert home.find(URL, "set", None, "renamed.tgz") is None


def test_a_wrong_md5_is_accepted_with_one_warning(data_home, capfd):
    place(data_home, "archive.tgz")
    for _ in range(2):
        assert home.download(URL, "set", "0" * 32)
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
    assert "9a0364b9e99bb480dd25e1f0284c8555" in captured.err  # md5 of b"content"


def test_the_right_md5_says_nothing(data_home, capfd):
    place(data_home, "archive.tgz")
    home.download(URL, "set", "9a0364b9e99bb480dd25e1f0284c8555")
    assert capfd.readouterr().err == ""


def test_a_missing_file_says_where_to_put_it(data_home):
    with pytest.raises(EnvironmentProblem, match="fetches nothing") as caught:
        home.download(URL, "set", "0" * 32)
    assert str(data_home / "set") in str(caught.value) and URL in str(caught.value)


def test_split_files_are_shared_out_and_read_back(tmp_path):
    samples = [(number, np.full(2, number)) for number in range(7)]
    home.split(lambda: iter(samples), 2, suffix=str(tmp_path / "part-%03d.pickle"))
    assert sorted(os.listdir(tmp_path)) == [f"part-{number:03d}.pickle" for number in range(4)]
    read = [[sample[0] for sample in home.cluster_files_reader(str(tmp_path / "part-*"), 2, worker)()]
            for worker in (0, 1)]
    assert read == [[0, 1, 4, 5], [2, 3, 6]]


def test_own_dumper_and_loader_get_text_files(tmp_path):
    home.split(lambda: iter([1, 2, 3]), 2, suffix=str(tmp_path / "%d.json"), dumper=json.dump)
    assert list(home.cluster_files_reader(str(tmp_path / "*.json"), 1, 0, loader=json.load)()) == [1, 2, 3]


def test_a_dumper_that_cannot_be_called_is_refused(tmp_path):
    with pytest.raises(UsageError, match="dumper"):
        home.split(lambda: iter([1]), 1, dumper="pickle")
