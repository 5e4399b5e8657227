"""``paddle.vision``, ``paddle.text`` and ``paddle.metric``: every name of 2.0, argument lists, module paths, and late
imports."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.data.io_datasets import Dataset
from fleet_mpi.errors import NotBuilt, UnknownName
from fleet_mpi.paddle import standing_in
from fleet_mpi.program.layers.layer import Layer

CLASSES = ("BaseTransform Compose ToTensor Resize RandomResizedCrop CenterCrop RandomHorizontalFlip RandomVerticalFlip "
           "Normalize Transpose BrightnessTransform SaturationTransform ContrastTransform HueTransform ColorJitter "
           "RandomCrop Pad RandomRotation Grayscale").split()
FUNCTIONS = ("to_tensor hflip vflip resize pad rotate to_grayscale crop center_crop adjust_brightness adjust_contrast "
             "adjust_hue normalize").split()
PICTURES = "MNIST FashionMNIST Flowers Cifar10 Cifar100 VOC2012 DatasetFolder ImageFolder".split()
TEXTS = "Conll05st Imdb Imikolov Movielens UCIHousing WMT14 WMT16".split()
NETWORKS = "LeNet VGG ResNet MobileNetV1 MobileNetV2".split()
MAKERS = ("resnet18 resnet34 resnet50 resnet101 resnet152 vgg11 vgg13 vgg16 vgg19 mobilenet_v1 mobilenet_v2").split()
METRICS = "Metric Accuracy Precision Recall Auc".split()

# As 2.0's documentation has them.
ARGUMENTS = {
    "vision.transforms.ToTensor": "data_format='CHW', keys=None",
    "vision.transforms.Resize": "size, interpolation='bilinear', keys=None",
    "vision.transforms.RandomResizedCrop":
        "size, scale=(0.08, 1.0), ratio=(0.75, 1.3333333333333333), interpolation='bilinear', keys=None",
    "vision.transforms.Normalize": "mean=0.0, std=1.0, data_format='CHW', to_rgb=False, keys=None",
    "vision.transforms.ColorJitter": "brightness=0, contrast=0, saturation=0, hue=0, keys=None",
    "vision.transforms.RandomCrop": "size, padding=None, pad_if_needed=False, fill=0, padding_mode='constant', "
                                    "keys=None",
    "vision.transforms.RandomRotation": "degrees, interpolation='nearest', expand=False, center=None, fill=0, "
                                        "keys=None",
    "vision.transforms.rotate": "img, angle, interpolation='nearest', expand=False, center=None, fill=0",
    "vision.transforms.normalize": "img, mean, std, data_format='CHW', to_rgb=False",
    "vision.datasets.MNIST": "image_path=None, label_path=None, mode='train', transform=None, download=True, "
                             "backend=None",
    "vision.datasets.FashionMNIST": "image_path=None, label_path=None, mode='train', transform=None, download=True, "
                                    "backend=None",
    "vision.datasets.Cifar100": "data_file=None, mode='train', transform=None, download=True, backend=None",
    "vision.datasets.Flowers":
        "data_file=None, label_file=None, setid_file=None, mode='train', transform=None, download=True, backend=None",
    "vision.datasets.DatasetFolder": "root, loader=None, extensions=None, transform=None, is_valid_file=None",
    "vision.models.ResNet": "block, depth, num_classes=1000, with_pool=True",
    "vision.models.MobileNetV2": "scale=1.0, num_classes=1000, with_pool=True",
    "vision.models.vgg16": "pretrained=False, batch_norm=False, **kwargs",
    "vision.image_load": "path, backend=None",
    "text.Imikolov": "data_file=None, data_type='NGRAM', window_size=-1, mode='train', min_word_freq=50, download=True",
    "text.Movielens": "data_file=None, mode='train', test_ratio=0.1, rand_seed=0, download=True",
    "text.Conll05st":
        "data_file=None, word_dict_file=None, verb_dict_file=None, target_dict_file=None, emb_file=None, download=True",
    "text.WMT16": "data_file=None, mode='train', src_dict_size=-1, trg_dict_size=-1, lang='en', download=True",
    "metric.Accuracy": "topk=(1,), name=None, *args, **kwargs",
    "metric.Auc": "curve='ROC', num_thresholds=4095, name='auc', *args, **kwargs",
}


def run_by_itself(program):
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_name_of_2_0_is_here():
    transforms = paddle.vision.transforms
    assert all(callable(getattr(transforms, name)) for name in CLASSES + FUNCTIONS)
    assert all(getattr(transforms.functional, name) is getattr(transforms, name) for name in FUNCTIONS)
    assert all(issubclass(getattr(paddle.vision.datasets, name), Dataset) for name in PICTURES)
    assert all(issubclass(getattr(paddle.text.datasets, name), Dataset) for name in TEXTS)
    assert all(getattr(paddle.text, name) is getattr(paddle.text.datasets, name) for name in TEXTS)
    assert all(issubclass(getattr(paddle.vision.models, name), Layer) for name in NETWORKS)
    assert all(getattr(paddle.vision, name) is getattr(paddle.vision.models, name) for name in NETWORKS + MAKERS)
    assert all(issubclass(getattr(paddle.metric, name), paddle.metric.Metric) for name in METRICS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_argument_lists(name):
    found = paddle
    for part in name.split("."):
        found = getattr(found, part)
    assert str(inspect.signature(found)).strip("()") == ARGUMENTS[name].removesuffix(")")


@pytest.mark.parametrize("name", [
    "vision.transforms.functional", "vision.transforms.transforms", "vision.datasets.mnist", "vision.datasets.folder",
    "vision.models.resnet", "vision.models.mobilenetv2", "vision.image", "vision.ops", "text.datasets.imdb", "metric"])
def test_module_paths_of_the_original(name):
    assert importlib.import_module(standing_in.our_name(f"paddle.{name}"))


def test_a_script_may_import_from_the_modules_below():
    printed = run_by_itself(
        "from fleet_mpi.paddle.standing_in import stand_in; stand_in(); import paddle.vision.transforms.transforms as "
        "T; from paddle.vision.models.resnet import BottleneckBlock; from paddle.text.datasets.imdb import Imdb; "
        "import paddle.vision.transforms.functional as F; from paddle.vision.datasets.folder import ImageFolder; "
        "import paddle; print(T.Compose is paddle.vision.transforms.Compose, Imdb is paddle.text.Imdb, "
        "BottleneckBlock.expansion)")
    assert printed == "True True 4\n"


def test_nothing_of_it_is_imported_before_it_is_used():
    printed = run_by_itself(
        "import sys, fleet_mpi.paddle; print([name for name in sys.modules if name == 'PIL' or name.startswith(("
        "'fleet_mpi.data.images', 'fleet_mpi.data.sets_by_number', 'fleet_mpi.program.models', "
        "'fleet_mpi.metrics.paddle2', 'fleet_mpi.paddle.text', 'fleet_mpi.paddle.vision.'))])")
    assert printed == "[]\n"


def test_what_is_not_built_says_so_when_it_is_used():
    from fleet_mpi.paddle.vision.ops import yolo_box
    with pytest.raises(NotBuilt, match="paddle.vision.ops.yolo_box: detection is not built"):
        yolo_box(None)
    with pytest.raises(NotBuilt, match="paddle.text.MovieReviews: .*Imdb"):
        paddle.text.MovieReviews()
    with pytest.raises(UnknownName, match="paddle.vision.models has no 'resnet20' .*did you mean 'resnet"):
        paddle.vision.models.resnet20


@pytest.mark.parametrize("masked", [True, False])
def test_deformable_convolutions_without_offsets_are_convolutions(masked):
    images = np.random.default_rng(0).normal(size=(2, 4, 6, 5)).astype("f4")
    x, offset = paddle.static.data("x", [None, 4, 6, 5]), paddle.static.data("offset", [None, 18, 6, 5])
    mask = paddle.static.data("mask", [None, 9, 6, 5]) if masked else None
    layer = paddle.vision.ops.DeformConv2D(4, 3, 3, padding=1)
    plain = paddle.nn.functional.conv2d(x, layer.weight, layer.bias, padding=1)
    feed = {"x": images, "offset": np.zeros((2, 18, 6, 5), "f4"),
            **({"mask": np.ones((2, 9, 6, 5), "f4")} if masked else {})}
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    found, want = exe.run(feed=feed, fetch_list=[layer(x, offset, mask), plain])
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
