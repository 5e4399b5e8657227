"""``paddle.distribution``: probability distributions."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.distributions import Distribution, Normal, Uniform
from fleet_mpi.program.layers.distributions import WeighedCategorical as Categorical

__getattr__ = _missing_name("paddle.distribution", globals())
