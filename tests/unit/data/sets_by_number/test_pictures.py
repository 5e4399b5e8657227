"""Sets of pictures by number: shapes and dtypes of both backends, the script's own files, and stand-ins."""

import gzip
import io
import pickle
import struct
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data import image_backend
from fleet_mpi.data.images.transforms import Compose, Normalize, Resize, ToTensor
from fleet_mpi.data.sets_by_number.coloured import Cifar10, Cifar100, Flowers
from fleet_mpi.data.sets_by_number.digits import MNIST, FashionMNIST
from fleet_mpi.data.sets_by_number.folders import VOC2012
from fleet_mpi.errors import EnvironmentProblem, UsageError

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 28, 28), dtype=np.uint8)


def write_idx(folder):
    """A pair of idx files; returns their paths."""
    folder.mkdir(exist_ok=True)
    images, labels = folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz"
    images.write_bytes(gzip.compress(struct.pack(">IIII", 2051, 4, 28, 28) + PIXELS.tobytes()))
    labels.write_bytes(gzip.compress(struct.pack(">II", 2049, 4) + bytes([3, 1, 4, 9])))
    return str(images), str(labels)


def write_tar(path, members, mode):
    """An archive of these bytes by name."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def png(pixels):
    """The bytes of an image file."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize("kind, folder", [(MNIST, "mnist"), (FashionMNIST, "fashion-mnist")])
def test_digits_from_files_of_either_place(data_home, tmp_path, kind, folder):
    images, labels = write_idx(data_home / folder)
    for dataset in (kind(), kind(mode="TRAIN"), kind(images, labels, download=False)):
        image, label = dataset[2]
        assert len(dataset) == 4 and isinstance(image, Image.Image) and image.mode == "L"
        assert (np.asarray(image) == PIXELS[2]).all() and label.dtype == np.int64 and label.tolist() == [4]
    plain, _ = kind(images, labels, backend="cv2")[1]
    assert plain.dtype == np.float32 and (plain == PIXELS[1]).all()


def test_transforms_of_digits(data_home):
    write_idx(data_home / "mnist")
    scaled, _ = MNIST(transform=ToTensor())[0]
    np.testing.assert_allclose(scaled, PIXELS[:1] / 255, atol=1e-6)
    centred, _ = MNIST(transform=Compose([ToTensor(), Normalize(mean=[127.5], std=[127.5])]), backend="cv2")[0]
    assert centred.shape == (1, 28, 28) and centred.dtype == np.float32
    np.testing.assert_allclose(centred, PIXELS[:1] / 127.5 - 1, atol=1e-6)


def test_the_backend_chosen_for_all_is_that_of_the_sets(few, monkeypatch):
    monkeypatch.setattr(image_backend, "_chosen", "pil")
    image_backend.set_image_backend("cv2")
    assert isinstance(Cifar10()[0][0], np.ndarray)
    assert isinstance(Cifar10(backend="pil")[0][0], Image.Image)
    image_backend.set_image_backend("tensor")
    with pytest.raises(UsageError, match="Cifar10: backend: expected pil or cv2, got 'tensor'"):
        Cifar10()


def nearest_mean(train, test):
    """The share of test pictures that are nearest to the mean of their class."""
    images, labels = (np.stack([np.asarray(field, float).ravel() for field in fields]) for fields in zip(*train))
    means = np.stack([images[labels[:, 0] == label].mean(0) for label in range(int(labels.max()) + 1)])
    return np.mean([((means - np.asarray(image, float).ravel()) ** 2).sum(1).argmin() == int(np.ravel(label)[0])
                    for image, label in test])


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST, Cifar10])
def test_the_stand_in_can_be_learnt_and_is_said_once(data_home, capfd, kind):
    train, test = kind(backend="cv2"), kind(mode="test", backend="cv2")
    again = kind(backend="cv2")
    assert all((a[0] == b[0]).all() and (a[1] == b[1]).all() for a, b in zip([train[i] for i in range(9)], again))
    assert (train[0][0] != test[0][0]).any()
    assert nearest_mean([train[i] for i in range(500)], [test[i] for i in range(200)]) > 0.5
    assert capfd.readouterr().err.count("using synthetic data") == 1


@pytest.mark.parametrize("kind, classes", [(Cifar10, 10), (Cifar100, 100), (Flowers, 102)])
def test_shapes_of_coloured_pictures(few, kind, classes):
    dataset = kind(mode="test")
    image, label = dataset[-1]
    size = 256 if kind is Flowers else 32
    assert len(dataset) == 40 and image.mode == "RGB" and image.size == (size, size)
    assert label.dtype == np.int64 and label.shape == ((1,) if kind is Flowers else ())
    assert len({int(np.ravel(label)[0]) for _, label in dataset}) == min(40, classes)
    made, _ = kind(mode="test", backend="cv2", transform=Compose([Resize((8, 9)), ToTensor()]))[0]
    assert made.shape == (3, 8, 9) and made.dtype == np.float32 and 0 <= made.min() < made.max() <= 1
    with pytest.raises(IndexError):
        dataset[40]


def test_cifar_takes_the_members_by_name(data_home, tmp_path):
    def batch(value, labels):
        return pickle.dumps({b"data": np.full((len(labels), 3072), value, np.uint8), b"labels": labels}, 2)

    path = tmp_path / "own" / "mine.tar.gz"
    write_tar(path,
              {"x/data_batch_2": batch(2, [7]), "x/data_batch_1": batch(1, [5, 6]), "x/test_batch": batch(9, [0])},
              "w:gz")
    dataset = Cifar10(str(path))
    assert [(int(np.asarray(image).max()), int(label)) for image, label in dataset] == [(1, 5), (1, 6), (2, 7)]


def test_flowers_are_listed_by_their_part_and_counted_from_one(data_home, matlab):
    colours = [np.full((6, 7, 3), value, np.uint8) for value in (10, 20, 30, 40)]
    write_tar(data_home / "flowers" / "102flowers.tgz",
              {f"jpg/image_{number:05d}.jpg": png(one) for number, one in enumerate(colours, 1)}, "w:gz")
    folder = data_home / "flowers"
    matlab.write(folder / "imagelabels.mat", [matlab.matrix("<", "labels", np.array([[5, 102, 1, 77]]))])
    matlab.write(folder / "setid.mat", [matlab.matrix("<", "trnid", np.array([[3]]), "u2", 4),
                                        matlab.matrix("<", "valid", np.array([[2]]), "u2", 4),
                                        matlab.matrix("<", "tstid", np.array([[4, 1]]), "u2", 4)])
    dataset = Flowers(backend="cv2")
    assert [(int(image[0, 0, 0]), label.tolist()) for image, label in dataset] == [(40, [77]), (10, [5])]
    sent = pickle.loads(pickle.dumps(dataset))
    assert not sent._contents and (sent[1][0] == 10).all()
    image, label = Flowers(mode="valid")[0]
    assert image.size == (7, 6) and label.tolist() == [102]


def test_voc_has_pictures_and_masks_and_no_stand_in(data_home):
    with pytest.raises(EnvironmentProblem, match="voc2012: expected the file .*VOCtrainval_11-May-2012.tar"):
        VOC2012()
    colours, mask = np.full((4, 5, 3), 30, np.uint8), np.arange(20, dtype=np.uint8).reshape(4, 5)
    root = "VOCdevkit/VOC2012/"
    write_tar(data_home / "voc2012" / "VOCtrainval_11-May-2012.tar", {
        root + "ImageSets/Segmentation/trainval.txt": b"a1\nb2\n", root + "ImageSets/Segmentation/val.txt": b"b2\n",
        **{f"{root}JPEGImages/{name}.jpg": png(colours) for name in ("a1", "b2")},
        **{f"{root}SegmentationClass/{name}.png": png(mask) for name in ("a1", "b2")}}, "w")
    dataset = pickle.loads(pickle.dumps(VOC2012(backend="cv2", transform=ToTensor())))
    image, found = dataset[1]
    assert len(dataset) == 2 and len(VOC2012(mode="valid")) == 1
    assert image.shape == (3, 4, 5) and found.dtype == np.float32 and (found == mask).all()
    assert VOC2012(mode="valid")[0][1].size == (5, 4)


@pytest.mark.parametrize("call, sentence", [
    (lambda: MNIST(mode="valid"), "MNIST: expected the mode train or test, got 'valid'"),
    (lambda: Flowers(mode="dev"), "Flowers: expected the mode train, valid or test"),
    (lambda: Cifar10(download=False), "Cifar10: download=False, and not every file of the set was named"),
    (lambda: Cifar10("/nowhere.tar.gz"), "expected a data file at /nowhere.tar.gz, and there is none"),
    (lambda: MNIST(image_path=__file__), "MNIST: some files were named, but train-labels-idx1-ubyte.gz neither")])
def test_what_cannot_be_meant_is_refused(data_home, call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


def test_pillow_images_without_pillow_are_refused_by_name(few, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EnvironmentProblem, match=r"Cifar100: this needs pillow.*backend='cv2'"):
        Cifar100()[0]
    assert Cifar100(backend="cv2")[0][0].shape == (32, 32, 3)
