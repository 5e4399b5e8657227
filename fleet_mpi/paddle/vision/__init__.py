"""``paddle.vision``: data sets of pictures, transforms, image classifiers; each is imported when it is first used."""

from fleet_mpi.data.image_backend import get_image_backend, set_image_backend
from fleet_mpi.errors import missing_name as _missing_name

_MODELS = ("LeNet", "VGG", "ResNet", "MobileNetV1", "MobileNetV2", "vgg11", "vgg13", "vgg16", "vgg19", "resnet18",
           "resnet34",
           "resnet50", "resnet101", "resnet152", "mobilenet_v1", "mobilenet_v2")

__getattr__ = _missing_name("paddle.vision", globals(), {
    "image_load": "fleet_mpi.data.images.loading",
    **{name: f"fleet_mpi.paddle.vision.{name}" for name in ("datasets", "image", "models", "ops", "transforms")},
    # 2.0 has these here as well.
    **dict.fromkeys(_MODELS, "fleet_mpi.paddle.vision.models"),
    **dict.fromkeys(("MNIST", "FashionMNIST", "Flowers", "Cifar10", "Cifar100", "VOC2012", "DatasetFolder",
                     "ImageFolder"),
                    "fleet_mpi.paddle.vision.datasets")})
