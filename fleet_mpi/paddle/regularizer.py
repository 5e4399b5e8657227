"""``paddle.regularizer``: weight decay, with the argument name of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build import regularizers as _regularizers


class L1Decay(_regularizers.L1Decay):
    """coeff times the parameter's sign."""

    def __init__(self, coeff=0.0):
        super().__init__(coeff)


class L2Decay(_regularizers.L2Decay):
    """coeff times the parameter."""

    def __init__(self, coeff=0.0):
        super().__init__(coeff)


__getattr__ = _missing_name("paddle.regularizer", globals())
