"""CIFAR-10 and CIFAR-100: a sample is (3072 float32 in [0, 1], channel by channel; label as int).

Files: the two Python archives under ``DATA_HOME/cifar``; their pickles are read restrictedly.
"""

import tarfile

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home, safe_pickle
from fleet_mpi.data.sets import coloured_patterns
from fleet_mpi.errors import UsageError

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"

_SYNTHETIC_COUNT = {"train": 5000, "test": 1000}


def train10(cycle=False):
    """A reader over the training images of 10 classes; with ``cycle`` it never ends."""
    return _reader(10, "train", "data_batch", cycle)


def test10(cycle=False):
    """A reader over the test images of 10 classes; with ``cycle`` it never ends."""
    return _reader(10, "test", "test_batch", cycle)


def train100(cycle=False):
    """A reader over the training images of 100 classes; with ``cycle`` it never ends."""
    return _reader(100, "train", "train", cycle)


def test100(cycle=False):
    """A reader over the test images of 100 classes; with ``cycle`` it never ends."""
    return _reader(100, "test", "test", cycle)


def fetch():
    """Say now whether real or synthetic images will be used."""
    train10()
    train100()


def reader_creator(filename, sub_name, cycle=False):
    """A reader over the members of an archive whose names contain ``sub_name``."""

    def read_once():
        for _, samples in batches(filename, sub_name):
            for pixels, label in samples:
                yield _flat(pixels), label

    return _repeated(read_once) if cycle else read_once


def batches(filename, sub_name):
    """Yield (name, samples) of the members of an archive whose names contain ``sub_name``, in its own order.

    A sample is (3072 bytes, channel by channel; label).
    """
    with tarfile.open(filename) as archive:
        for member in archive:
            if sub_name in member.name.rsplit("/", 1)[-1] and member.isfile():
                batch = safe_pickle.load(archive.extractfile(member), encoding="bytes")
                yield member.name, _samples(batch, f"{filename}:{member.name}")


def drawn(classes, split):
    """The stand-in's pictures of one part, by number: (red, green, blue [32, 32, 3], label)."""
    notices.stand_in("cifar", "32 x 32 pictures with colours and stripes by class", home.folder("cifar"))
    return coloured_patterns.Drawn(_SYNTHETIC_COUNT[split], classes, 32, split == "test", len(_SYNTHETIC_COUNT))


def _reader(classes, split, sub_name, cycle):
    url, md5 = (CIFAR10_URL, CIFAR10_MD5) if classes == 10 else (CIFAR100_URL, CIFAR100_MD5)
    path = home.find(url, "cifar", md5)
    if path is not None:
        return reader_creator(path, sub_name, cycle)
    pictures = drawn(classes, split)

    def read_drawn():
        for pixels, label in pictures:
            yield _flat(np.moveaxis(pixels, 2, 0)), label

    return _repeated(read_drawn) if cycle else read_drawn


def _samples(batch, where):
    pixels = batch.get(b"data") if isinstance(batch, dict) else None
    labels = batch.get(b"labels", batch.get(b"fine_labels")) if isinstance(batch, dict) else None
    if pixels is None or labels is None:
        raise UsageError(f"cifar: {where} is to hold a dictionary with data and labels or fine_labels")
    return [(image, int(label)) for image, label in zip(pixels, labels)]


def _flat(image):
    return (image.ravel() / 255.0).astype(np.float32)


def _repeated(read_once):
    def read_for_ever():
        while True:
            yield from read_once()

    return read_for_ever
