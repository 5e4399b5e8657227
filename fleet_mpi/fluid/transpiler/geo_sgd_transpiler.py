"""``fluid.transpiler.geo_sgd_transpiler``: the transpiler with workers that exchange what they moved."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.transpile.distribute_transpiler import GeoSgdTranspiler

__getattr__ = _missing_name("paddle.fluid.transpiler.geo_sgd_transpiler", globals())
