"""Sets of texts by number: shapes and dtypes of their samples, the script's own files, and arguments that are
refused."""

import io
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

from fleet_mpi.data.sets import conll05, imikolov, movielens, uci_housing
from fleet_mpi.data.sets_by_number.ratings import Movielens
from fleet_mpi.data.sets_by_number.roles import Conll05st
from fleet_mpi.data.sets_by_number.texts import Imdb, Imikolov, UCIHousing
from fleet_mpi.data.sets_by_number.translations import WMT14, WMT16
from fleet_mpi.errors import UsageError


def write_tar(path, members):
    """An archive of these texts by name; returns its path."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return str(path)


def test_house_prices(data_home, tmp_path):
    train, test = UCIHousing(), UCIHousing(mode="test")
    features, price = train[0]
    assert (len(train), len(test)) == (404, 102) and (features.shape, price.shape) == ((13,), (1,))
    assert features.dtype == price.dtype == np.float32
    np.testing.assert_allclose(features, next(uci_housing.train()())[0], rtol=1e-6)
    own = tmp_path / "mine.data"
    own.write_text("\n".join(" ".join(str(row * 14 + n) for n in range(14)) for row in range(10)))
    assert [float(price[0]) for _, price in UCIHousing(str(own), mode="test", download=False)] == [125, 139]


def test_reviews(data_home, tmp_path):
    words, label = Imdb(mode="test")[-1]
    assert words.dtype == np.int64 and words.ndim == 1 and label.tolist() == [1]
    own = write_tar(tmp_path / "mine.tgz", {
        "aclImdb/train/pos/1_9.txt": "good, good film", "aclImdb/train/neg/2_1.txt": "bad film!",
        "aclImdb/test/pos/3_9.txt": "good"})
    dataset = Imdb(own, cutoff=1)
    assert dict(dataset.word_idx) == {"good": 0, "film": 1, "<unk>": 2}
    assert [(words.tolist(), label.tolist()) for words, label in dataset] == [([0, 0, 1], [0]), ([2, 1], [1])]
    assert dataset.docs == [[0, 0, 1], [2, 1]] and dataset.labels == [0, 1] and len(Imdb(own, "test", 0)) == 1


def test_sentences(data_home, tmp_path):
    dataset = Imikolov(window_size=4)
    sample = dataset[0]
    assert len(sample) == 4 and all(word.shape == () and word.dtype == np.int64 for word in sample)
    words = imikolov.build_dict(50)
    assert tuple(int(word) for word in sample) == next(imikolov.train(words, 4)()) and dataset.word_idx == words
    source, target = Imikolov(data_type="seq", mode="test")[5]
    assert source[1:].tolist() == target[:-1].tolist() and source[0] == words["<s>"] and target[-1] == words["<e>"]
    parts = {f"./simple-examples/data/ptb.{part}.txt": text for part, text in
             (("train", "a b a\n"), ("valid", "b\n"), ("test", "a c\n"))}
    own = Imikolov(write_tar(tmp_path / "own.tgz", parts), "NGRAM", 2, "test", min_word_freq=0)
    ids = own.word_idx
    assert [[int(word) for word in pair] for pair in own] == [
        [ids["<s>"], ids["a"]], [ids["a"], ids["<unk>"]], [ids["<unk>"], ids["<e>"]]]


def test_the_test_part_of_made_up_sentences_is_a_part_of_its_own(data_home):
    words = imikolov.build_dict(50)
    parts = [list(read(words, 3)()) for read in (imikolov.train, imikolov.test, imikolov.last_part)]
    assert parts[0][:50] != parts[2][:50] != parts[1][:50]


def test_ratings(data_home, tmp_path):
    dataset = Movielens(mode="test")
    sample = dataset[0]
    assert [field.ndim for field in sample] == [1] * 8 and [len(sample[n]) for n in (0, 1, 2, 3, 4, 7)] == [1] * 6
    assert -3 <= sample[7][0] <= 5 and int(sample[4][0]) in dataset.movie_info
    assert dataset.user_info[int(sample[0][0])].job_id == sample[3][0]
    assert set(sample[6].tolist()) <= set(dataset.movie_title_dict.values())
    assert len(dataset) + len(Movielens()) == 12000
    assert [field.tolist() for field in dataset[0]] == [field if isinstance(field, list) else [field]
                                                        for field in next(movielens.test()())]
    path = tmp_path / "mine.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-1m/users.dat", "1::F::25::7::0\n")
        archive.writestr("ml-1m/movies.dat", "3::Two Words (1999)::War|Drama\n")
        archive.writestr("ml-1m/ratings.dat", "1::3::4::9\n")
    own, = Movielens(path, test_ratio=0.0)
    assert [field.tolist() for field in own] == [[1], [1], [2], [7], [3], [1, 0], [0, 1], [3.0]]


def test_roles(data_home):
    dataset = Conll05st()
    sample, want = dataset[7], list(conll05.test()())[7]
    assert len(sample) == 9 and [field.tolist() for field in sample] == list(want)
    assert dataset.get_dict() == conll05.get_dict() and len(dataset.label_dict) == 9
    vectors = np.fromfile(dataset.get_embedding(), "f4", offset=16)
    assert vectors.size == 32 * len(dataset.word_dict)
    with pytest.raises(UsageError,
                       match="Conll05st: some files were named, but .*conll05st-tests.tar.gz and .*verbDict.txt"):
        Conll05st(word_dict_file=__file__)


def test_pairs_of_wmt14(data_home, tmp_path):
    dataset = WMT14(mode="gen", dict_size=50)
    source, target, following = dataset[0]
    assert (source[0], source[-1], target[0], following[-1]) == (0, 1, 0, 1)
    assert target[1:].tolist() == following[:-1].tolist() and max(map(int, source)) < 50
    words, turned = dataset.get_dict()[0], dataset.get_dict(reverse=True)[0]
    assert len(words) == 50 and turned[words["<e>"]] == "<e>"
    own = write_tar(tmp_path / "own.tgz", {"x/src.dict": "<s>\n<e>\n<unk>\na\n", "x/trg.dict": "<s>\n<e>\n<unk>\nb\n",
                                           "x/train/train": "a z\tb\n"})
    assert [field.tolist() for field in WMT14(own, dict_size=4)[0]] == [[0, 3, 2, 1], [0, 3], [3, 1]]


def test_pairs_of_wmt16(data_home, tmp_path):
    dataset = WMT16(mode="val", src_dict_size=60, trg_dict_size=40)
    assert len(dataset) == 300 and len(dataset.get_dict("en")) == 60 and len(dataset.get_dict("de", reverse=True)) == 40
    own = write_tar(tmp_path / "own.tgz", {"wmt16/train": "a a c\tb\n"})
    assert [field.tolist() for field in WMT16(own, "train", 5, 4, "en")[0]] == [[0, 3, 3, 4, 1], [0, 3], [3, 1]]
    assert [field.tolist() for field in WMT16(own, "train", 5, 4, "de")[0]] == [[0, 3, 1], [0, 3, 3, 2], [3, 3, 2, 1]]


@pytest.mark.parametrize("call, sentence", [
    (lambda: Imdb(mode="val"), "Imdb: expected the mode train or test, got 'val'"),
    (lambda: Imikolov(data_type="bag"), "expected the data_type NGRAM or SEQ, got 'bag'"),
    (lambda: Imikolov(), "an n-gram has at least 1 word, got n=-1"),
    (lambda: WMT14(), "WMT14: expected dict_size above 0"), (lambda: WMT16(src_dict_size=9), "trg_dict_size above 0"),
    (lambda: WMT16(src_dict_size=9, trg_dict_size=9).get_dict("fr"), "expected the language 'en' or 'de', got 'fr'"),
    (lambda: UCIHousing(download=False), "UCIHousing: download=False"),
    (lambda: Movielens("/nowhere.zip"), "expected a data file at /nowhere.zip")])
def test_what_cannot_be_meant_is_refused(data_home, call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


def test_sets_go_to_worker_processes(data_home):
    dataset = pickle.loads(pickle.dumps(UCIHousing(mode="test")))
    assert len(dataset) == 102 and dataset[0][0].shape == (13,)
