"""``fluid.layer_helper``: for scripts that write layers of their own."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.layer_helper import LayerHelper

__getattr__ = _missing_name("paddle.fluid.layer_helper", globals())
