"""MNIST digits: a sample is (784 float32 pixels in [-1, 1], the digit as int).

Files: the four idx archives under ``DATA_HOME/mnist``. The stand-in draws digits from strokes.
"""

import gzip
import struct
from functools import lru_cache

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.errors import UsageError

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

_TRAIN_COUNT, _TEST_COUNT = 10000, 2000
_BLOCK = 500
_VARIANTS = 24

# Strokes in a unit square, x to the right and y down, one string of points per stroke.
_STROKES = {
    0: ["30 50 25 75 50 90 75 75 70 25 50 10 30 25 30 50"],
    1: ["35 25 52 10 52 90"],
    2: ["27 30 40 12 62 12 72 30 60 52 27 90 76 90"],
    3: ["28 16 55 10 70 28 48 46 72 66 56 90 26 84"],
    4: ["62 90 62 10 25 64 80 64"],
    5: ["72 10 34 10 31 45 58 42 73 64 58 89 28 85"],
    6: ["66 12 40 32 29 64 46 90 68 78 64 54 32 60"],
    7: ["26 10 75 10 44 90"],
    8: ["50 47 30 30 50 10 70 30 50 47 28 70 50 90 72 70 50 47"],
    9: ["70 40 48 50 32 32 48 11 68 18 70 40 62 90"],
}


def train():
    """A reader over the training images."""
    return _reader("train", (TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5), (TRAIN_LABEL_URL, TRAIN_LABEL_MD5))


def test():
    """A reader over the test images."""
    return _reader("test", (TEST_IMAGE_URL, TEST_IMAGE_MD5), (TEST_LABEL_URL, TEST_LABEL_MD5))


def fetch():
    """Say now whether real or synthetic images will be used."""
    train()
    test()


def reader_creator(image_filename, label_filename, buffer_size):
    """A reader over a pair of gzipped idx files; ``buffer_size`` images are scaled at once."""

    def read_images():
        images, labels = read_pair(image_filename, label_filename)
        for start in range(0, len(images), buffer_size):
            part = images[start:start + buffer_size].astype(np.float32)
            part = (part / 255.0 * 2.0 - 1.0).reshape(len(part), -1)
            yield from zip(part, labels[start:start + buffer_size].tolist())

    return read_images


def read_pair(image_filename, label_filename):
    """The arrays of a pair of gzipped idx files: bytes [count, height, width], and as many labels."""
    images, labels = _read_idx(image_filename, 2051, 3), _read_idx(label_filename, 2049, 1)
    if len(images) != len(labels):
        raise UsageError(f"mnist: {image_filename} has {len(images)} images, "
                         f"{label_filename} has {len(labels)} labels")
    return images, labels


def drawn(split):
    """The stand-in's arrays: bytes [count, 28, 28], and as many labels."""
    _say_drawn()
    samples = list(_synthetic_reader(split)())
    pixels = np.rint((np.stack([image for image, _ in samples]) + 1.0) * 127.5).astype(np.uint8)
    return pixels.reshape(-1, 28, 28), np.array([label for _, label in samples])


def _say_drawn():
    notices.stand_in("mnist", f"{_TRAIN_COUNT} train and {_TEST_COUNT} test digits drawn from strokes",
                     home.folder("mnist"))


def _reader(split, image_file, label_file):
    images = home.find(image_file[0], "mnist", image_file[1])
    labels = home.find(label_file[0], "mnist", label_file[1])
    if images is not None and labels is not None:
        return reader_creator(images, labels, 100)
    _say_drawn()
    return _synthetic_reader(split)


def _read_idx(path, magic, dimensions):
    """The array of an idx file: magic number, one big-endian size per dimension, then bytes."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    header = struct.calcsize(f">{1 + dimensions}I")
    found, *shape = struct.unpack_from(f">{1 + dimensions}I", content) if len(content) >= header else (None,)
    if found != magic or len(content) != header + np.prod(shape, dtype=int):
        raise UsageError(f"mnist: {path} is not an idx file of {dimensions} dimensions: magic {found!r} "
                         f"(expected {magic}), sizes {shape}, {len(content)} bytes")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _synthetic_reader(split):
    count = _TRAIN_COUNT if split == "train" else _TEST_COUNT

    def read_drawn():
        for block in range(count // _BLOCK):
            images, labels = _draw_block(split == "train", block)
            yield from zip(images, labels.tolist())

    return read_drawn


def _draw_block(is_train, block):
    """Images [n, 784] and digits: a variant of each digit, moved by up to 2 pixels, with noise."""
    rng = np.random.default_rng([28, is_train, block])
    labels = rng.integers(0, 10, _BLOCK)
    shapes = _variants()[labels, rng.integers(0, _VARIANTS, _BLOCK)]
    down, right = rng.integers(0, 5, (2, _BLOCK, 1, 1))
    steps = np.arange(28)
    moved = shapes[np.arange(_BLOCK)[:, None, None], down + steps[:, None], right + steps]
    noise = rng.random(moved.shape, dtype=np.float32) * 0.15
    images = np.clip(moved * rng.uniform(0.7, 1.0, (_BLOCK, 1, 1)) + noise, 0.0, 1.0)
    return (images * 2.0 - 1.0).astype(np.float32).reshape(_BLOCK, 784), labels


@lru_cache(maxsize=1)
def _variants():
    """Every digit drawn in several slants, sizes and widths: [10, variants, 32, 32] in [0, 1]."""
    rng = np.random.default_rng(10)
    drawn = np.zeros((10, _VARIANTS, 32, 32), np.float32)
    for digit, strokes in _STROKES.items():
        for variant in range(_VARIANTS):
            for stroke in strokes:
                points = np.array(stroke.split(), float).reshape(-1, 2) / 100.0 - 0.5
                points = points + rng.normal(scale=0.02, size=points.shape)
                points[:, 0] += points[:, 1] * rng.uniform(-0.3, 0.3)
                ink = _ink(points * rng.uniform(19.0, 25.0) + 15.5, rng.uniform(1.0, 1.9))
                drawn[digit, variant] = np.maximum(drawn[digit, variant], ink)
    return drawn


def _ink(points, width):
    """Darkness of 32 x 32 pixels near the line through ``points``, fading at its edge."""
    y, x = np.mgrid[0:32, 0:32].astype(float)
    nearest = np.full((32, 32), np.inf)
    for (x0, y0), (x1, y1) in zip(points[:-1], points[1:]):
        along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2 + 1e-9)
        along = np.clip(along, 0.0, 1.0)
        nearest = np.minimum(nearest, np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0)))
    return np.clip(width + 0.5 - nearest, 0.0, 1.0)
