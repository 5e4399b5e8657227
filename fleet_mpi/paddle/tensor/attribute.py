"""``paddle.tensor.attribute``: what is known of a variable."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import tensor as _tensor
from fleet_mpi.program.layers.positions import rank
from fleet_mpi.program.layers.tensor import shape


def numel(x, name=None):
    """How many elements x has, as a variable."""
    return _tensor.size(x)


__getattr__ = _missing_name("paddle.tensor.attribute", globals())
