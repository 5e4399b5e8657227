"""``fluid.layer_helper_base``: what layers of a script's own are written with."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.layer_helper import LayerHelper as LayerHelperBase

__getattr__ = _missing_name("paddle.fluid.layer_helper_base", globals())
