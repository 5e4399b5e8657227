"""``paddle.common_ops_import``: what the original's own layers import; some scripts do too."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import core
from fleet_mpi.fluid.framework import Variable, default_main_program, default_startup_program, in_dygraph_mode
from fleet_mpi.fluid.layer_helper import LayerHelper

__getattr__ = _missing_name("paddle.common_ops_import", globals())
