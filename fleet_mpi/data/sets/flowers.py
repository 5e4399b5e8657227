"""Flowers of 102 kinds: a sample is (150528 float32 = 3 x 224 x 224, label 0 .. 101).

Files: 102flowers.tgz, imagelabels.mat and setid.mat under ``DATA_HOME/flowers``; decoding their JPEG
needs PIL. The stand-in makes pictures in the PPM format, which goes the same way without PIL.
"""

import io
import itertools
import os
import tarfile

import numpy as np

from fleet_mpi import notices, settings
from fleet_mpi.data import home
from fleet_mpi.data.ppm_files import ppm_array
from fleet_mpi.data.readers import map_readers, xmap_readers
from fleet_mpi.data.sets import coloured_patterns
from fleet_mpi.data.sets.matlab_files import load_arrays
from fleet_mpi.errors import EnvironmentProblem, UsageError

URL_PREFIX = "http://paddlemodels.bj.bcebos.com/flowers/"
DATA_URL = URL_PREFIX + "102flowers.tgz"
LABEL_URL = URL_PREFIX + "imagelabels.mat"
SETID_URL = URL_PREFIX + "setid.mat"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"
# The original trains on what the authors call the test set, since it is the larger one.
TRAIN_FLAG, TEST_FLAG, VALID_FLAG = "tstid", "trnid", "valid"

CLASSES = 102
_MEAN_BGR = np.array([103.94, 116.78, 123.68], np.float32).reshape(3, 1, 1)
_SHORTER_EDGE, _CROP = 256, 224
# As many as the real sets have; a picture is made only when it is read.
_SYNTHETIC_COUNT = {TRAIN_FLAG: 6149, TEST_FLAG: 1020, VALID_FLAG: 1020}


def train_mapper(sample):
    """(image bytes, label) to (vector, label): random crop, mirrored half of the times.

    Draws from numpy's global random state.
    """
    return _to_vector(sample[0], np.random), sample[1]


def test_mapper(sample):
    """(image bytes, label) to (vector, label): the centre of the image."""
    return _to_vector(sample[0], None), sample[1]


def train(mapper=train_mapper, buffered_size=1024, use_xmap=True, cycle=False):
    """A reader over the training images; ``mapper`` gets (image bytes, label)."""
    return _reader(TRAIN_FLAG, mapper, buffered_size, use_xmap, cycle)


def test(mapper=test_mapper, buffered_size=1024, use_xmap=True, cycle=False):
    """A reader over the test images; ``mapper`` gets (image bytes, label)."""
    return _reader(TEST_FLAG, mapper, buffered_size, use_xmap, cycle)


def valid(mapper=test_mapper, buffered_size=1024, use_xmap=True, cycle=False):
    """A reader over the validation images; ``mapper`` gets (image bytes, label)."""
    return _reader(VALID_FLAG, mapper, buffered_size, use_xmap, cycle)


def fetch():
    """Say now whether real or synthetic images will be used."""
    _images(TRAIN_FLAG)


def _reader(flag, mapper, buffered_size, use_xmap, cycle):
    images = _images(flag)

    def read_images():
        for _ in itertools.count() if cycle else range(1):
            yield from images()

    if mapper is train_mapper:
        # The same crops in every run, whichever thread takes an image: each has its own random stream.
        read, mapper = _numbered(read_images), _map_numbered
    else:
        read = read_images
    if not use_xmap:
        return map_readers(mapper, read)
    threads = settings.get("CPU_NUM") or min(4, os.cpu_count() or 1)
    return xmap_readers(mapper, read, threads, buffered_size)


def _numbered(reader):
    seed = settings.get("FLEET_MPI_SEED") or int(np.random.randint(2 ** 31))
    numbers = itertools.count()

    def read_numbered():
        for image, label in reader():
            yield image, label, (seed, next(numbers))

    return read_numbered


def _map_numbered(sample):
    image, label, stream = sample
    return _to_vector(image, np.random.RandomState(np.random.MT19937(np.random.SeedSequence(stream)))), label


def _images(flag):
    """A reader of (image bytes, label) for one part of the set."""
    files = [home.find(url, "flowers", md5) for url, md5 in
             ((DATA_URL, DATA_MD5), (LABEL_URL, LABEL_MD5), (SETID_URL, SETID_MD5))]
    if all(files):
        return _archived(*files, flag)
    pictures = drawn(flag)

    def read_drawn():
        for pixels, label in pictures:
            yield b"P6 %d %d 255\n" % (_SHORTER_EDGE, _SHORTER_EDGE) + pixels.tobytes(), label

    return read_drawn


def drawn(flag):
    """The stand-in's pictures of one part, by number: (red, green, blue [256, 256, 3], label)."""
    notices.stand_in("flowers", f"pictures with colours and stripes for {CLASSES} classes", home.folder("flowers"))
    return coloured_patterns.Drawn(_SYNTHETIC_COUNT[flag], CLASSES, _SHORTER_EDGE, list(_SYNTHETIC_COUNT).index(flag),
                                   len(_SYNTHETIC_COUNT))


def labels_by_name(label_path, setid_path, flag):
    """{name in the archive: label from 0 up} of one part, in the order of its list."""
    arrays, parts = load_arrays(label_path), load_arrays(setid_path)
    if "labels" not in arrays or flag not in parts:
        raise UsageError(f"flowers: expected 'labels' in {label_path} (has {sorted(arrays)}) "
                         f"and {flag!r} in {setid_path} (has {sorted(parts)})")
    labels = arrays["labels"].ravel()
    return {f"jpg/image_{number:05d}.jpg": int(labels[number - 1]) - 1 for number in parts[flag].ravel().tolist()}


def members(archive_path, names):
    """Yield (name, bytes) of the archive's files with these names, in its own order."""
    with tarfile.open(archive_path) as archive:
        for member in archive:
            if member.name in names:
                yield member.name, archive.extractfile(member).read()


def _archived(archive_path, label_path, setid_path, flag):
    label_of = labels_by_name(label_path, setid_path, flag)

    def read_archive():
        for name, content in members(archive_path, label_of):
            yield content, label_of[name]

    return read_archive


def _to_vector(content, rng):
    """Decode, cut 224 x 224, channels first in the order blue, green, red, minus their means."""
    pixels = _decode(content)
    height, width = pixels.shape[:2]
    down, right, mirrored = (height - _CROP) // 2, (width - _CROP) // 2, False
    if rng is not None:
        down, right = rng.randint(0, height - _CROP + 1), rng.randint(0, width - _CROP + 1)
        mirrored = rng.randint(2) == 0
    pixels = pixels[down:down + _CROP, right:right + _CROP, ::-1]
    if mirrored:
        pixels = pixels[:, ::-1]
    return (pixels.transpose(2, 0, 1).astype(np.float32) - _MEAN_BGR).ravel()


def _decode(content):
    """Red, green, blue [height, width, 3] with a shorter edge of 256 pixels."""
    if content[:2] == b"P6":
        pixels = ppm_array(content)
        if min(pixels.shape[:2]) == _SHORTER_EDGE:
            return pixels
    try:
        from PIL import Image
    except ImportError:
        raise EnvironmentProblem("flowers: decoding the images needs PIL, which is not installed: "
                                 "pip install pillow, or remove the files to use synthetic images") from None
    with Image.open(io.BytesIO(content)) as image:
        image = image.convert("RGB")
        scale = _SHORTER_EDGE / min(image.size)
        size = [max(_SHORTER_EDGE, round(edge * scale)) for edge in image.size]
        return np.asarray(image.resize(size, Image.BICUBIC))
