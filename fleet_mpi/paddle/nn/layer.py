"""``paddle.nn.layer``, and the modules below it in the original: the layer classes of ``paddle.nn``."""

import sys as _sys

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle import nn as _nn

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE
activation = common = container = conv = distance = extension = layers = loss = norm = pooling = rnn = \
    transformer = vision = _sys.modules[__name__]
_refuse = _missing_name("paddle.nn.layer", vars(_nn))


def __getattr__(name):
    is_there = name in vars(_nn) or name in _nn._LATE or name == "__all__"
    return getattr(_nn, name) if is_there else _refuse(name)


def __dir__():
    return dir(_nn)
