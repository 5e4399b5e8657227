"""``paddle.vision.datasets``: pictures by number, from files or as stand-ins."""

from fleet_mpi.data.sets_by_number.coloured import Cifar10, Cifar100, Flowers
from fleet_mpi.data.sets_by_number.digits import MNIST, FashionMNIST
from fleet_mpi.data.sets_by_number.folders import IMG_EXTENSIONS, VOC2012, DatasetFolder, ImageFolder, default_loader
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.vision.datasets", globals())
