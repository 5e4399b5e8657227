"""Folders of files as datasets."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data import image_backend
from fleet_mpi.data.images.transforms import ToTensor
from fleet_mpi.data.sets_by_number.folders import DatasetFolder, ImageFolder
from fleet_mpi.errors import CheckpointMissing, UsageError


@pytest.fixture
def folder(tmp_path):
    """Two classes, one with a folder below, and files that are no images."""
    for value, name in enumerate(("cat/b.png", "cat/A.PNG", "dog/deep/c.jpg", "dog/d.bmp")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), (value * 10, 0, 0)).save(path, "PNG")
    (tmp_path / "dog" / "notes.txt").write_text("woof")
    (tmp_path / "list.txt").write_text("cat dog")
    return tmp_path


def names(paths, folder):
    """Paths below the folder."""
    return [str(path).removeprefix(f"{folder}/") for path in paths]


def test_a_folder_for_each_class(folder):
    dataset = DatasetFolder(str(folder))
    assert dataset.classes == ["cat", "dog"] and dataset.class_to_idx == {"cat": 0, "dog": 1}
    assert names([path for path, _ in dataset.samples], folder) == ["cat/A.PNG", "cat/b.png", "dog/d.bmp",
                                                                    "dog/deep/c.jpg"]
    assert dataset.targets == [0, 0, 1, 1] and len(dataset) == 4
    image, target = dataset[3]
    assert target == 1 and image.size == (4, 3) and image.getpixel((0, 0)) == (20, 0, 0)


def test_all_files_below_a_folder(folder, monkeypatch):
    dataset = ImageFolder(str(folder), transform=ToTensor())
    assert names(dataset.samples, folder) == ["cat/A.PNG", "cat/b.png", "dog/d.bmp", "dog/deep/c.jpg"]
    image, = dataset[0]
    assert image.shape == (3, 3, 4) and image.max() == np.float32(10 / 255)
    monkeypatch.setattr(image_backend, "_chosen", "cv2")
    assert pickle.loads(pickle.dumps(ImageFolder(folder)))[3][0].tolist() == np.full((3, 4, 3), [20, 0, 0]).tolist()


def test_the_script_says_which_files_count_and_how_they_are_read(folder):
    assert len(DatasetFolder(folder, extensions=[".png"])) == 2
    texts = ImageFolder(folder, loader=lambda path: Path(path).read_text(),
                        is_valid_file=lambda path: path.endswith(".txt"))
    assert [text for text, in texts] == ["cat dog", "woof"]


def test_folders_without_files_are_refused(folder):
    with pytest.raises(UsageError, match="ImageFolder: no file below .* counts; expected .gif"):
        ImageFolder(folder, extensions=(".gif",))
    with pytest.raises(CheckpointMissing, match="DatasetFolder: expected a folder at .*/birds, and there is none"):
        DatasetFolder(folder / "birds")
    with pytest.raises(UsageError, match="expected extensions or is_valid_file, got both"):
        DatasetFolder(folder, extensions=[".png"], is_valid_file=bool)
