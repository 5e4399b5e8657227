"""Photographs by pixel: the archive's lists and images, and a stand-in whose colours tell the classes."""

import io
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

from fleet_mpi import settings
from fleet_mpi.data.sets import voc2012
from fleet_mpi.errors import EnvironmentProblem


def encoded(pixels, kind):
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    if kind == "PNG":
        image.putpalette(list(range(256)) * 3)
    image.save(stream, kind)
    return stream.getvalue()


@pytest.fixture
def files(data_home):
    folder = data_home / "voc2012"
    folder.mkdir()
    contents = {voc2012.SET_FILE.format("trainval"): b"a\nb\n", voc2012.SET_FILE.format("train"): b"a\n",
                voc2012.SET_FILE.format("val"): b"b\n"}
    for name, kind in (("a", 3), ("b", 20)):
        contents[voc2012.DATA_FILE.format(name)] = encoded(np.full((4, 6, 3), 100, np.uint8), "JPEG")
        contents[voc2012.LABEL_FILE.format(name)] = encoded(np.full((4, 6), kind, np.uint8), "PNG")
    with tarfile.open(folder / "VOCtrainval_11-May-2012.tar", "w") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def test_images_and_classes_come_by_the_lists_of_the_archive(files):
    (image, classes), (_, other) = voc2012.train()()
    assert image.shape == (4, 6, 3) and image.dtype == classes.dtype == np.uint8 and abs(int(image[0, 0, 0]) - 100) < 3
    assert classes.shape == (4, 6) and set(classes.ravel()) == {3} and set(other.ravel()) == {20}
    assert [kinds[0, 0] for _, kinds in voc2012.test()()] == [3] and [kinds[0, 0]
                                                                      for _, kinds in voc2012.val()()] == [20]


def test_without_pil_it_says_what_to_install(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EnvironmentProblem, match="pillow"):
        next(voc2012.train()())


def test_in_the_stand_in_neighbouring_colours_tell_the_class(data_home, capfd):
    with settings.override(FLEET_MPI_SYNTHETIC_SAMPLES=150):
        scenes = list(voc2012.train()())
    assert len(scenes) == 150 and {kind for _, kinds in scenes for kind in np.unique(kinds)} == {*range(21), 255}

    def mean_colours(some):
        return [(kind, image[kinds == kind].mean(0)) for image, kinds in some for kind in np.unique(kinds)
                if kind != 255]
    known = mean_colours(scenes[:100])
    centres = {kind: np.mean([colour for one, colour in known if one == kind], 0) for kind in range(21)}
    asked = mean_colours(scenes[100:])
    right = sum(min(centres, key=lambda one: np.abs(centres[one] - colour).sum()) == kind for kind, colour in asked)
    assert right / len(asked) > 0.5  # by chance 0.05
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_parts_of_the_stand_in_differ(data_home):
    first = [next(part()()) for part in (voc2012.train, voc2012.test, voc2012.val)]
    assert len({image.tobytes() for image, _ in first}) == 3
