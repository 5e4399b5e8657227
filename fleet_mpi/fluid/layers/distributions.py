"""``fluid.layers.distributions``: probability distributions."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.distributions import Categorical, Distribution, MultivariateNormalDiag, Normal, Uniform

__getattr__ = _missing_name("paddle.fluid.layers.distributions", globals())
