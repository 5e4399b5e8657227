"""``paddle.optimizer``: the optimizers with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.of_1x import OPTIMIZER as _OF_1X
from fleet_mpi.paddle.optimizer import lr
from fleet_mpi.program.optimizers.paddle2 import (SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lamb, Momentum,
                                                  Optimizer, RMSProp)

__getattr__ = _missing_name("paddle.optimizer", globals(), _OF_1X)
