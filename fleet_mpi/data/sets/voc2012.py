"""Photographs with the class of every pixel (PASCAL VOC 2012): a sample is (image [height, width, 3], classes [height,
width]).

Both are uint8; class 0 is background, 1 .. 20 are kinds of thing, 255 is where one meets another. File:
VOCtrainval_11-May-2012.tar under ``DATA_HOME/voc2012``; decoding its images needs PIL. In the stand-in things are discs
and boxes with the colours and stripes of their class.
"""

import io
import tarfile

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets import coloured_patterns
from fleet_mpi.errors import EnvironmentProblem

VOC_URL = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
_ROOT = "VOCdevkit/VOC2012"
SET_FILE = _ROOT + "/ImageSets/Segmentation/{}.txt"
DATA_FILE = _ROOT + "/JPEGImages/{}.jpg"
LABEL_FILE = _ROOT + "/SegmentationClass/{}.png"
CACHE_DIR = "voc2012"

CLASSES = 21
_BORDER = 255
_SYNTHETIC_COUNT = {"trainval": 2913, "train": 1464, "val": 1449}
_SEED = 2012


def train():
    """A reader over the 2913 images of training and validation, which the original trains on."""
    return _reader("trainval")


def test():
    """A reader over the 1464 images of the training part, which the original tests on."""
    return _reader("train")


def val():
    """A reader over the 1449 images of the validation part."""
    return _reader("val")


def fetch():
    """Say now whether real or synthetic images will be used."""
    _path()


def reader_creator(filename, sub_name):
    """A reader over the images of an archive that one of its lists names."""
    def read_images():
        with tarfile.open(filename) as archive:
            for name in archive.extractfile(SET_FILE.format(sub_name)).read().decode().split():
                yield tuple(_decoded(archive.extractfile(file.format(name)).read()) for file in (DATA_FILE, LABEL_FILE))
    return read_images


def _path():
    path = home.find(VOC_URL, CACHE_DIR, VOC_MD5)
    if path is None:
        notices.stand_in("voc2012", f"discs and boxes of {CLASSES - 1} classes", home.folder(CACHE_DIR))
    return path


def _reader(part):
    path = _path()
    return reader_creator(path, part) if path is not None else lambda: _drawn(part)


def _decoded(content):
    try:
        from PIL import Image
    except ImportError:
        raise EnvironmentProblem("voc2012: decoding the images needs PIL, which is not installed: pip install pillow, "
                                 "or remove the file to use synthetic images") from None
    with Image.open(io.BytesIO(content)) as image:
        return np.array(image)


def _drawn(part):
    number_of_part = list(_SYNTHETIC_COUNT).index(part)
    for number in range(coloured_patterns.limited(_SYNTHETIC_COUNT[part])):
        yield scene(number * len(_SYNTHETIC_COUNT) + number_of_part)


def scene(number):
    """A background with one to three things, each before those drawn earlier."""
    rng = np.random.default_rng([_SEED, number])
    size = int(rng.integers(48, 81))
    image, classes = coloured_patterns.picture(0, size, _SEED, number), np.zeros((size, size), np.uint8)
    y, x = np.mgrid[0:size, 0:size]
    for kind in rng.choice(np.arange(1, CLASSES), rng.integers(1, 4), replace=False).tolist():
        (down, right), radius = rng.integers(size // 5, size - size // 5, 2), size * rng.uniform(0.12, 0.3)
        far = np.hypot(y - down, x - right) if rng.random() < 0.5 else np.maximum(abs(y - down), abs(x - right))
        image[far < radius] = coloured_patterns.picture(kind, size, _SEED, number)[far < radius]
        classes[far < radius + 1] = _BORDER
        classes[far < radius - 1] = kind
    return image, classes
