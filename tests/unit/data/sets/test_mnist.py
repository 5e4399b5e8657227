"""MNIST: idx files byte by byte, and a stand-in whose digits can be told apart."""

import gzip
import struct

import numpy as np
import pytest

from fleet_mpi.data.sets import mnist
from fleet_mpi.errors import UsageError


def write_idx(folder, prefix, images, labels):
    folder.mkdir(exist_ok=True)
    with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">IIII", 2051, *images.shape) + images.tobytes())
    with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">II", 2049, len(labels)) + bytes(labels))


def test_idx_files_are_scaled_to_minus_one_to_one(data_home):
    images = np.random.default_rng(0).integers(0, 256, (7, 28, 28), dtype=np.uint8)
    write_idx(data_home / "mnist", "t10k", images, [3, 1, 4, 1, 5, 9, 2])
    samples = list(mnist.test()())
    assert [label for _, label in samples] == [3, 1, 4, 1, 5, 9, 2]
    assert type(samples[0][1]) is int
    pixels = np.stack([image for image, _ in samples])
    assert pixels.dtype == np.float32 and pixels.shape == (7, 784)
    np.testing.assert_allclose(pixels, images.reshape(7, 784) / 127.5 - 1, atol=1e-6)


@pytest.mark.parametrize("buffer_size", [1, 3, 100])
def test_the_buffer_size_does_not_change_the_samples(data_home, buffer_size):
    write_idx(data_home / "mnist", "train", np.arange(4 * 784).reshape(4, 28, 28).astype(np.uint8), [0, 1, 2, 3])
    folder = data_home / "mnist"
    reader = mnist.reader_creator(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz",
                                  buffer_size)
    assert [label for _, label in reader()] == [0, 1, 2, 3]


def test_a_file_that_is_no_idx_file_is_refused_by_name(data_home):
    write_idx(data_home / "mnist", "train", np.zeros((2, 28, 28), np.uint8), [1, 2])
    damaged = data_home / "mnist" / "train-labels-idx1-ubyte.gz"
    with gzip.open(damaged, "wb") as file:
        file.write(struct.pack(">II", 2049, 5) + b"\x01\x02")
    with pytest.raises(UsageError, match="train-labels"):
        next(mnist.train()())


def test_images_and_labels_of_different_number_are_refused(data_home):
    write_idx(data_home / "mnist", "train", np.zeros((3, 28, 28), np.uint8), [1, 2])
    with pytest.raises(UsageError, match="3 images"):
        next(mnist.train()())


def test_the_stand_in_is_the_same_every_pass_and_said_once(data_home, capfd):
    first, second = list(mnist.test()()), list(mnist.test()())
    mnist.train()
    mnist.fetch()
    assert len(first) == 2000
    assert all((a[0] == b[0]).all() and a[1] == b[1] for a, b in zip(first, second))
    assert {label for _, label in first} == set(range(10))
    image = first[0][0]
    assert image.dtype == np.float32 and image.shape == (784,) and image.min() >= -1 and image.max() <= 1
    captured = capfd.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1


def test_a_plain_linear_model_learns_the_stand_in(data_home):
    train = list(mnist.train()())[:4000]
    x = np.stack([image for image, _ in train] + [image for image, _ in mnist.test()()])
    digits = np.array([label for _, label in train] + [label for _, label in mnist.test()()])
    x = np.column_stack([x, np.ones(len(x))])
    gram = x[:4000].T @ x[:4000] + 10 * np.eye(785)
    weights = np.linalg.solve(gram, x[:4000].T @ np.eye(10)[digits[:4000]])
    accuracy = ((x[4000:] @ weights).argmax(1) == digits[4000:]).mean()
    assert accuracy > 0.8  # a LeNet passes 97 % after 60 batches of 64
