"""``fluid.param_attr``: how parameters are named, initialised and trained."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.param_attr import ParamAttr

__getattr__ = _missing_name("paddle.fluid.param_attr", globals(), {
    "WeightNormParamAttr": "fleet_mpi.program.build.weight_norm:WeightNormParamAttr"})
