"""``paddle.vision.models``: image classifiers as layers for static programs."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.models import lenet, mobilenetv1, mobilenetv2, resnet, vgg
from fleet_mpi.program.models.lenet import LeNet
from fleet_mpi.program.models.mobilenetv1 import MobileNetV1, mobilenet_v1
from fleet_mpi.program.models.mobilenetv2 import MobileNetV2, mobilenet_v2
from fleet_mpi.program.models.resnet import (BasicBlock, BottleneckBlock, ResNet, resnet18, resnet34, resnet50,
                                             resnet101, resnet152)
from fleet_mpi.program.models.vgg import VGG, vgg11, vgg13, vgg16, vgg19

__getattr__ = _missing_name("paddle.vision.models", globals())
