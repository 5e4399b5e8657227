"""Transforms as objects: their arguments, their random draws, and samples of several fields."""

import pickle
import random

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data.images import colour_transforms, transforms
from fleet_mpi.data.images.kinds import pillow
from fleet_mpi.errors import EnvironmentProblem, NotBuilt, UsageError

ARRAY = np.random.default_rng(2).integers(0, 256, (24, 36, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def seeded():
    """The module generators stand at the same place in every test."""
    random.seed(3)
    np.random.seed(3)


@pytest.mark.parametrize("kind", [np.asarray, Image.fromarray])
@pytest.mark.parametrize("transform, shape", [
    (transforms.Resize(12), (12, 18, 3)), (transforms.Resize((8, 9)), (8, 9, 3)),
    (transforms.CenterCrop(10), (10, 10, 3)),
    (transforms.RandomResizedCrop(16), (16, 16, 3)), (transforms.RandomCrop((10, 12)), (10, 12, 3)),
    (transforms.RandomCrop(40, pad_if_needed=True), (40, 40, 3)), (transforms.RandomCrop(24, padding=4), (24, 24, 3)),
    (transforms.Pad((1, 2)), (28, 38, 3)), (transforms.RandomRotation(30), (24, 36, 3)),
    (transforms.RandomRotation((90, 90), expand=True), (36, 24, 3)), (transforms.Transpose(), (3, 24, 36)),
    (transforms.ToTensor(), (3, 24, 36)), (transforms.Normalize(127.5, 127.5, "HWC"), (24, 36, 3)),
    (colour_transforms.Grayscale(3), (24, 36, 3)), (colour_transforms.ColorJitter(0.4, 0.4, 0.4, 0.4), (24, 36, 3))])
def test_shapes_of_both_kinds(kind, transform, shape):
    assert np.asarray(transform(kind(ARRAY))).shape == shape
    assert np.asarray(pickle.loads(pickle.dumps(transform))(kind(ARRAY))).shape == shape


def test_one_after_the_other():
    composed = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor(), lambda x: x * 2])
    assert composed(ARRAY).shape == (3, 8, 8) and 1 < composed(ARRAY).max() <= 2
    assert repr(composed).startswith("Compose(\n    <") and repr(composed).endswith("\n)")


def test_flips_come_with_their_probability():
    flips = [transforms.RandomHorizontalFlip()(ARRAY) for _ in range(200)]
    count = sum((one == ARRAY[:, ::-1]).all() for one in flips)
    assert 70 < count < 130 and sum((one == ARRAY).all() for one in flips) == 200 - count
    assert (transforms.RandomVerticalFlip(1)(ARRAY) == ARRAY[::-1]).all()
    assert transforms.RandomHorizontalFlip(0)(ARRAY) is ARRAY


def test_a_seed_of_the_module_generators_repeats_the_draws():
    both = transforms.Compose([transforms.RandomResizedCrop(8), colour_transforms.ColorJitter(0.5, 0.5, 0.5, 0.2)])
    drawn = []
    for _ in range(2):
        random.seed(11)
        np.random.seed(11)
        drawn.append([both(ARRAY) for _ in range(3)])
    assert all((a == b).all() for a, b in zip(*drawn)) and (drawn[0][0] != drawn[0][1]).any()


def test_random_crops_stay_within_and_move():
    numbered = np.arange(24 * 36).reshape(24, 36)
    corners = {int(transforms.RandomCrop(20)(numbered)[0, 0]) for _ in range(100)}
    assert len(corners) > 20 and max(corners) <= 4 * 36 + 16


def test_random_resized_crops_have_the_area_and_shape_asked_for():
    crop = transforms.RandomResizedCrop(8, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    for _ in range(50):
        top, left, height, width = crop._get_param(ARRAY)
        assert 0 <= top <= 24 - height and 0 <= left <= 36 - width
        assert 0.15 < height * width / (24 * 36) < 0.55 and 0.4 < width / height < 2.5


@pytest.mark.parametrize("shape, want",
                         [((10, 100), (0, 43, 10, 13)), ((100, 10), (43, 0, 13, 10)), ((20, 20), (0, 0, 20, 20))])
def test_where_no_crop_fits_the_middle_is_taken(shape, want):
    crop = transforms.RandomResizedCrop(8, scale=(5.0, 5.0))
    assert crop._get_param(np.zeros(shape)) == want


@pytest.mark.parametrize("kind, value, factors", [
    (colour_transforms.BrightnessTransform, 0.4, (0.6, 1.4)), (colour_transforms.ContrastTransform, 3, (0, 4)),
    (colour_transforms.SaturationTransform, (0.5, 0.7), (0.5, 0.7)),
    (colour_transforms.HueTransform, 0.9, (-0.5, 0.5))])
def test_colours_change_by_a_factor_within_bounds(kind, value, factors, monkeypatch):
    seen = []
    monkeypatch.setattr(kind, "_adjust", staticmethod(lambda img, factor: seen.append(factor)))
    for _ in range(100):
        kind(value)(ARRAY)
    assert factors[0] <= min(seen) and max(seen) <= factors[1]
    assert max(seen) - min(seen) > 0.8 * (factors[1] - factors[0])
    assert kind((0, 0) if kind is colour_transforms.HueTransform else 0)(ARRAY) is ARRAY


def test_one_number_normalises_images_of_one_channel_too():
    assert transforms.Normalize(0.5, 0.5)(np.ones((1, 4, 4), np.float32)).tolist() == np.ones((1, 4, 4)).tolist()


class Flip(transforms.BaseTransform):
    """A user's transform of several fields that share a draw."""

    def _get_params(self, inputs):
        return {"width": inputs[self.keys.index("image")].shape[1]}

    def _apply_image(self, image):
        return image[:, ::-1]

    def _apply_coords(self, coords):
        return self.params["width"] - coords


def test_fields_go_to_the_method_of_their_key():
    image, coords, other = Flip(keys=("image", "coords"))((ARRAY, np.array([1, 35]), "left alone"))
    assert (image == ARRAY[:, ::-1]).all() and coords.tolist() == [35, 1] and other == "left alone"
    assert (Flip()(ARRAY) == image).all()


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda: Flip(keys=("image", "sound")), NotBuilt, "Flip: no method _apply_sound for the key 'sound'"),
    (lambda: Flip(keys="image"), UsageError, r"expected keys such as \('image', 'mask'\)"),
    (lambda: transforms.BaseTransform()(ARRAY), NotImplementedError, "defines no _apply_image"),
    (lambda: transforms.RandomHorizontalFlip(1.5), UsageError, "a probability from 0 to 1, got 1.5"),
    (lambda: transforms.RandomResizedCrop(8, scale=(1, 0.5)), UsageError, r"expected \(least, most\)"),
    (lambda: transforms.RandomRotation(-3), UsageError, "expected degrees from 0 up"),
    (lambda: transforms.RandomCrop(40)(ARRAY), UsageError,
     r"at least \(40, 40\) pixels, got \(24, 36\): .*pad_if_needed"),
    (lambda: transforms.Pad((1, 2, 3)), UsageError, "1, 2 or 4 numbers"),
    (lambda: colour_transforms.BrightnessTransform(-1), UsageError, "brightness: expected a number from 0 up"),
    (lambda: colour_transforms.HueTransform((-1, 0.2)), UsageError, r"within \(-0.5, 0.5\)")])
def test_what_cannot_be_meant_is_refused(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()


def test_the_gate_to_pillow_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(EnvironmentProblem,
                       match="MNIST: this needs pillow, which is not installed: pip install pillow"):
        pillow("MNIST")
