"""``fluid.regularizer``: weight decay."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.regularizers import (
    L1Decay,
    L1DecayRegularizer,
    L2Decay,
    L2DecayRegularizer,
    append_regularization_ops,
)
from fleet_mpi.program.build.regularizers import Regularizer as WeightDecayRegularizer

__getattr__ = _missing_name("paddle.fluid.regularizer", globals())
