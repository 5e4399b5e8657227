"""Image classifiers: their parameters by path and number, their outputs, and that they train."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import functional_loss
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.models.lenet import LeNet
from fleet_mpi.program.models.mobilenetv1 import MobileNetV1, mobilenet_v1
from fleet_mpi.program.models.mobilenetv2 import MobileNetV2, mobilenet_v2
from fleet_mpi.program.models.resnet import (
    BasicBlock,
    BottleneckBlock,
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
)
from fleet_mpi.program.models.vgg import VGG, _features, vgg11, vgg13, vgg16, vgg19
from fleet_mpi.program.optimizers.plain import SGD

RNG = np.random.default_rng(0)

# What the papers and other libraries count, batch norms' scales and shifts included.
COUNTS = {LeNet: 61610, resnet18: 11689512, resnet34: 21797672, resnet50: 25557032, resnet101: 44549160,
          resnet152: 60192808,
          vgg11: 132863336, vgg13: 133047848, vgg16: 138357544, vgg19: 143667240, mobilenet_v1: 4231976,
          mobilenet_v2: 3504872}


def run(out, images):
    """What a network gives with first values."""
    executor = Executor()
    executor.run(default_startup_program())
    found, = executor.run(feed={"x": images}, fetch_list=[out])
    return found


@pytest.mark.parametrize("make", COUNTS)
def test_the_number_of_parameters(make):
    assert sum(np.prod(param.shape) for param in make().parameters() if param.trainable) == COUNTS[make]


@pytest.mark.parametrize("make, size, out", [
    (lambda: LeNet(), (1, 28, 28), (10,)), (lambda: LeNet(num_classes=0), (1, 28, 28), (16, 5, 5)),
    (lambda: resnet18(num_classes=7), (3, 32, 32), (7,)), (lambda: resnet50(num_classes=0), (3, 32, 32), (2048, 1, 1)),
    (lambda: ResNet(BasicBlock, 18, num_classes=0, with_pool=False), (3, 64, 32), (512, 2, 1)),
    (lambda: mobilenet_v1(scale=0.25, num_classes=5), (3, 32, 32), (5,)),
    (lambda: MobileNetV1(0.25, num_classes=0), (3, 64, 64), (256, 1, 1)),
    (lambda: mobilenet_v2(scale=0.5, num_classes=5), (3, 32, 32), (5,)),
    (lambda: MobileNetV2(0.35, num_classes=0, with_pool=False), (3, 64, 64), (1280, 2, 2))])
def test_shapes_of_outputs(make, size, out):
    x = static_data("x", [None, *size])
    found = make()(x)
    assert tuple(found.shape) == (-1, *out)
    assert run(found, RNG.normal(size=(2, *size)).astype("f4")).shape == (2, *out)


@pytest.mark.parametrize("batch_norm, layers", [(False, 21), (True, 29)])
def test_features_of_vgg(batch_norm, layers):
    features = _features(11, batch_norm)
    assert len(features) == layers
    found = VGG(features, num_classes=0)(static_data("x", [None, 3, 32, 32]))
    assert run(found, RNG.normal(size=(1, 3, 32, 32)).astype("f4")).shape == (1, 512, 7, 7)


def test_paths_of_states_are_those_of_the_original():
    paths = dict(resnet18(num_classes=3).named_parameters())
    assert {"conv1.weight", "bn1.weight", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight", "layer4.1.bn2.bias",
            "fc.weight"} <= set(paths)
    assert "layer1.0.conv3.weight" in dict(resnet50().named_parameters())
    assert "conv2_1._depthwise_conv._conv.weight" in dict(MobileNetV1(0.25).named_parameters())
    assert {"features.1.conv.0.0.weight", "classifier.1.bias"} <= set(dict(MobileNetV2(0.35).named_parameters()))
    assert {"features.0.weight", "fc.2.bias"} <= set(dict(LeNet().named_parameters()))
    assert "layer1.0.bn1._mean" in dict(resnet18().named_buffers())


def test_a_bottleneck_with_groups():
    block = BottleneckBlock(64, 16, groups=4, base_width=32, dilation=2)
    assert list(block.conv2.weight.shape) == [32, 8, 3, 3]
    assert tuple(block(static_data("x", [None, 64, 8, 8])).shape) == (-1, 64, 8, 8)


def test_lenet_trains():
    default_main_program().random_seed = default_startup_program().random_seed = 5
    label = static_data("y", [None, 1], "int64")
    loss = functional_loss.cross_entropy(LeNet(num_classes=4)(static_data("x", [None, 1, 28, 28])), label)
    SGD(0.05).minimize(loss)
    centres = RNG.normal(size=(4, 1, 28, 28))
    labels = RNG.integers(0, 4, (32, 1))
    images = (centres[labels[:, 0]] + 0.3 * RNG.normal(size=(32, 1, 28, 28))).astype("f4")
    executor = Executor()
    executor.run(default_startup_program())
    losses = [float(executor.run(feed={"x": images, "y": labels}, fetch_list=[loss])[0][0]) for _ in range(20)]
    assert losses[-1] < losses[0] / 4


def test_evaluation_takes_no_dropout_and_running_moments():
    net = mobilenet_v2(scale=0.35, num_classes=3)
    net.eval()
    out = net(static_data("x", [None, 3, 32, 32]))
    attrs = {op.type: op.all_attrs()["is_test"] for op in default_main_program().global_block().ops
             if op.type in ("dropout", "batch_norm")}
    assert attrs == {"dropout": True, "batch_norm": True} and out.shape[-1] == 3


@pytest.mark.parametrize("make", [make for make in COUNTS if make is not LeNet])
def test_weights_from_the_network_are_refused(make):
    with pytest.raises(NotBuilt, match=rf"{make.__name__}\(pretrained=True\): nothing is fetched"):
        make(pretrained=True)


def test_other_depths_are_refused():
    with pytest.raises(UsageError, match="ResNet: expected a depth of 18, 34, 50, 101, 152, got 20"):
        ResNet(BasicBlock, 20)
    with pytest.raises(NotBuilt, match="BasicBlock: only groups=1"):
        BasicBlock(8, 8, groups=2)
