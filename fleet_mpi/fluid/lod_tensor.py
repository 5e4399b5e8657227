"""``fluid.lod_tensor``: tensors with the lengths of their sequences."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.scope import create_lod_tensor, create_random_int_lodtensor

__getattr__ = _missing_name("paddle.fluid.lod_tensor", globals())
