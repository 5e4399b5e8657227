"""Criteo lines: encoding, hashing, files, and a stand-in that can be learnt."""

import subprocess
import sys
import zlib

import numpy as np
import pytest

from fleet_mpi.data.sets import ctr
from fleet_mpi.errors import UsageError

LINE = "\t".join(["1", "10", "-3", "", "25", *["0"] * 9, "68fd1e64", "", *["ab"] * 24]) + "\n"


def area_under_curve(score, clicked):
    rank = score.argsort().argsort()
    positive = clicked.sum()
    return (rank[clicked].sum() - positive * (positive - 1) / 2) / (positive * (~clicked).sum())


def test_a_line_becomes_28_fields():
    dense, *ids, label = ctr.encode(LINE)
    assert dense.dtype == np.float32 and dense.tolist()[:4] == [0.5, 0.0, 0.0, 0.5]
    assert len(ids) == 26 and label == [1]
    assert ids[0] == [zlib.crc32(b"1468fd1e64") % 1000001]
    assert ids[1] == [zlib.crc32(b"15") % 1000001]
    assert ids[2] != ids[3]  # the same text in another column is another id


def test_pythons_hash_is_there_for_those_who_want_the_originals_ids():
    assert ctr.encode(LINE, python_hash=True)[1] == [hash("1468fd1e64") % 1000001]


def test_ids_stay_below_the_hash_dimension():
    assert all(0 <= value[0] < 50 for value in ctr.encode(LINE, hash_dim=50)[1:27])


@pytest.mark.parametrize("as_given", [lambda folder: folder / "a.txt", lambda folder: [str(folder / "a.txt")],
                                      lambda folder: str(folder)])
def test_files_are_given_by_path_list_or_folder(data_home, capfd, as_given):
    folder = data_home / "mine"
    folder.mkdir()
    ctr.write_synthetic(folder / "a.txt", 5)
    assert len(list(ctr.train(as_given(folder))())) == 5
    assert capfd.readouterr().err == ""


def test_files_in_data_home_are_taken_without_being_named(data_home):
    (data_home / "ctr").mkdir()
    (data_home / "ctr" / "part-0").write_text(LINE * 3)
    assert len(list(ctr.train()())) == 3


def test_a_damaged_line_is_named_by_file_and_number(tmp_path):
    (tmp_path / "a.txt").write_text(LINE + "1\t2\n")
    with pytest.raises(UsageError, match="a.txt, line 2.*40 fields"):
        list(ctr.train(tmp_path / "a.txt")())


def test_a_word_where_a_number_belongs_is_named_by_line(tmp_path):
    (tmp_path / "a.txt").write_text(LINE.replace("-3", "x"))
    with pytest.raises(UsageError, match="line 1"):
        list(ctr.train(tmp_path / "a.txt")())


def test_synthetic_lines_are_criteo_lines_that_depend_on_the_seed_only():
    lines = list(ctr.synthetic_lines(1500))
    assert len(lines) == 1500 and lines == list(ctr.synthetic_lines(1500))
    assert lines[:100] == list(ctr.synthetic_lines(100)) != list(ctr.synthetic_lines(100, seed=1))
    fields = np.array([line.rstrip("\n").split("\t") for line in lines])
    assert fields.shape == (1500, 40)
    assert 0.2 < (fields[:, 0] == "1").mean() < 0.4
    assert all(len(text) in (0, 8) for text in fields[:, 14:].ravel()) and "" in fields[:, 5]


def test_a_linear_model_on_numbers_alone_passes_an_auc_of_0_7(data_home, capfd):
    def arrays(reader):
        samples = list(reader())
        return (np.column_stack([np.stack([sample[0] for sample in samples]), np.ones(len(samples))]),
                np.array([sample[-1][0] for sample in samples]) == 1)

    x, clicked = arrays(ctr.train(synthetic_count=4000))
    weight = np.linalg.lstsq(x, clicked.astype(float), rcond=None)[0]
    x, clicked = arrays(ctr.test(synthetic_count=2000))
    assert area_under_curve(x @ weight, clicked) > 0.75
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1


def test_the_module_is_a_pipe_command():
    done = subprocess.run([sys.executable, "-m", "fleet_mpi.data.sets.ctr"], input=LINE, text=True,
                          capture_output=True, check=True)
    words = done.stdout.split()
    assert words[0] == "13" and len(words) == 1 + 13 + 26 * 2 + 2 and words[-2:] == ["1", "1"]


def test_ids_may_lie_far_beyond_32_bits_and_stay_different():
    far = {ctr.encode(line, hash_dim=10 ** 10)[1][0]: ctr.encode(line, hash_dim=1 << 32)[1][0]
           for line in ctr.synthetic_lines(400)}
    assert max(far) > 1 << 32 and max(far) < 10 ** 10 and len(set(far.values())) == len(far)
