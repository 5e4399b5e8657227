"""Flowers: the three files of the set, the way from image to vector, and the stand-in."""

import io
import itertools
import tarfile

import numpy as np
import pytest
from PIL import Image

from fleet_mpi import settings
from fleet_mpi.data.readers import firstn
from fleet_mpi.data.sets import flowers
from fleet_mpi.errors import EnvironmentProblem


def ppm(pixels):
    height, width = pixels.shape[:2]
    return b"P6\n%d %d\n255\n" % (width, height) + pixels.tobytes()


@pytest.fixture
def write_set(data_home, matlab):
    return lambda images: _write_set(data_home, matlab, images)


def _write_set(data_home, matlab, images):
    folder = data_home / "flowers"
    folder.mkdir()
    with tarfile.open(folder / "102flowers.tgz", "w:gz") as archive:
        for number, content in enumerate(images, 1):
            info = tarfile.TarInfo(f"jpg/image_{number:05d}.jpg")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    matlab.write(folder / "imagelabels.mat", [matlab.matrix("<", "labels", np.array([[5, 102, 1, 77]]))])
    matlab.write(folder / "setid.mat", [matlab.matrix("<", "trnid", np.array([[3]]), "u2", 4),
                                     matlab.matrix("<", "valid", np.array([[2]]), "u2", 4),
                                     matlab.matrix("<", "tstid", np.array([[1, 4]]), "u2", 4)])


def flat_colour(red, green, blue, height=256, width=300):
    return ppm(np.full((height, width, 3), (red, green, blue), np.uint8))


@pytest.mark.parametrize("use_xmap", [True, False])
def test_the_parts_and_labels_come_from_the_matlab_files(data_home, write_set, use_xmap):
    write_set([flat_colour(value, 0, 0) for value in (10, 20, 30, 40)])
    assert [label for _, label in flowers.train(use_xmap=use_xmap)()] == [4, 76]
    assert [label for _, label in flowers.test(use_xmap=use_xmap)()] == [0]
    assert [label for _, label in flowers.valid(use_xmap=use_xmap)()] == [101]


def test_channels_are_blue_green_red_less_their_means(data_home, write_set):
    write_set([flat_colour(200, 150, 100)] * 4)
    vector, _ = next(flowers.test()())
    assert vector.shape == (150528,) and vector.dtype == np.float32
    blue, green, red = vector.reshape(3, 224, 224)
    assert np.allclose(blue, 100 - 103.94) and np.allclose(green, 150 - 116.78) and np.allclose(red, 200 - 123.68)


def test_the_test_part_is_the_centre_of_the_image(data_home, write_set):
    pixels = np.zeros((256, 300, 3), np.uint8)
    pixels[16:240, 38:262] = 255
    write_set([ppm(pixels)] * 4)
    vector, _ = next(flowers.test()())
    assert vector.min() > 100


def test_an_own_mapper_gets_image_bytes_and_label(data_home, write_set):
    write_set([b"one", b"two", b"three", b"four"])
    assert list(flowers.train(mapper=lambda sample: sample)()) == [(b"one", 4), (b"four", 76)]


def test_jpeg_without_pil_says_what_to_install(data_home, write_set, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "PIL", None)
    write_set([b"\xff\xd8 jpeg"] * 4)
    with pytest.raises(EnvironmentProblem, match="pillow"):
        next(flowers.test()())


def test_jpeg_is_resized_to_a_shorter_edge_of_256(data_home, write_set):
    content = io.BytesIO()
    Image.new("RGB", (500, 400), (200, 150, 100)).save(content, "JPEG")
    write_set([content.getvalue()] * 4)
    vector, _ = next(flowers.test()())
    assert np.allclose(vector.reshape(3, -1).mean(1), [100 - 103.94, 150 - 116.78, 200 - 123.68], atol=3)


def test_the_stand_in_covers_102_classes_in_the_range_of_images(data_home, capfd):
    labels = [label for _, label in itertools.islice(flowers.train(mapper=lambda sample: sample)(), 204)]
    assert sorted(labels) == sorted([*range(102)] * 2)
    vectors = np.stack([vector for vector, _ in firstn(flowers.test(), 4)()])
    assert vectors.shape == (4, 150528) and vectors.dtype == np.float32
    assert -124 <= vectors.min() < -60 and 100 < vectors.max() <= 152
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_random_crops_repeat_with_a_seed_and_differ_between_passes(data_home):
    with settings.override(FLEET_MPI_SEED=11):
        first, second = flowers.train(), flowers.train(use_xmap=False)
        passes = [[vector for vector, _ in firstn(first, 4)()] for _ in range(2)]
        again = [vector for vector, _ in firstn(second, 4)()]
    assert all((a == b).all() for a, b in zip(passes[0], again))
    assert any((a != b).any() for a, b in zip(passes[0], passes[1]))


def test_cycle_begins_again(data_home, write_set):
    write_set([b"one", b"two", b"three", b"four"])
    cycled = flowers.test(mapper=lambda sample: sample[1], cycle=True)()
    assert list(itertools.islice(cycled, 3)) == [0, 0, 0]
    cycled.close()
