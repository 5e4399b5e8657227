"""CIFAR: archives of pickles, and coloured stand-ins."""

import io
import itertools
import pickle
import tarfile

import numpy as np
import pytest

from fleet_mpi.data.sets import cifar
from fleet_mpi.errors import UsageError


def write_archive(path, members):
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, value in members.items():
            content = pickle.dumps(value, 2)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def pixels(count, value):
    return np.full((count, 3072), value, np.uint8)


def test_cifar10_takes_the_batches_of_its_part(data_home):
    write_archive(data_home / "cifar" / "cifar-10-python.tar.gz", {
        "cifar-10-batches-py/data_batch_1": {b"data": pixels(2, 51), b"labels": [3, 4]},
        "cifar-10-batches-py/data_batch_2": {b"data": pixels(1, 255), b"labels": [5]},
        "cifar-10-batches-py/test_batch": {b"data": pixels(1, 0), b"labels": [9]}})
    train = list(cifar.train10()())
    assert [label for _, label in train] == [3, 4, 5]
    assert train[0][0].dtype == np.float32 and np.allclose(train[0][0], 0.2) and np.allclose(train[2][0], 1)
    assert [label for _, label in cifar.test10()()] == [9]


def test_cifar100_uses_the_fine_labels(data_home):
    write_archive(data_home / "cifar" / "cifar-100-python.tar.gz", {
        "cifar-100-python/meta": {b"fine_label_names": [b"apple"]},
        "cifar-100-python/train": {b"data": pixels(2, 1), b"fine_labels": [77, 99], b"coarse_labels": [1, 2]},
        "cifar-100-python/test": {b"data": pixels(1, 1), b"fine_labels": [42], b"coarse_labels": [3]}})
    assert [label for _, label in cifar.train100()()] == [77, 99]
    assert [label for _, label in cifar.test100()()] == [42]


def test_cycle_begins_again(data_home):
    write_archive(data_home / "cifar" / "cifar-10-python.tar.gz",
                  {"x/test_batch": {b"data": pixels(2, 1), b"labels": [0, 1]}})
    assert [label for _, label in itertools.islice(cifar.test10(cycle=True)(), 5)] == [0, 1, 0, 1, 0]


def test_an_archive_without_labels_is_refused(data_home):
    write_archive(data_home / "cifar" / "cifar-10-python.tar.gz", {"x/test_batch": {b"data": pixels(1, 1)}})
    with pytest.raises(UsageError, match="test_batch"):
        list(cifar.test10()())


@pytest.mark.parametrize("reader, classes", [(cifar.train10, 10), (cifar.train100, 100)])
def test_the_stand_in_has_all_classes_and_nearest_means_tell_them(data_home, reader, classes):
    samples = list(itertools.islice(reader()(), 10 * classes))
    images, labels = np.stack([image for image, _ in samples]), np.array([label for _, label in samples])
    assert images.shape[1] == 3072 and images.dtype == np.float32 and images.min() >= 0 and images.max() <= 1
    half = len(images) // 2
    means = np.stack([images[:half][labels[:half] == label].mean(0) for label in range(classes)])
    distance = ((images[half:, None, ::16] - means[None, :, ::16]) ** 2).sum(-1)
    assert (distance.argmin(1) == labels[half:]).mean() > 0.6  # by chance 1 / classes


def test_train_and_test_of_the_stand_in_differ(data_home):
    assert (next(cifar.train10()())[0] != next(cifar.test10()())[0]).any()
