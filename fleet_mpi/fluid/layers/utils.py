"""``fluid.layers.utils``: nested structures of variables."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.structures import flatten
from fleet_mpi.program.structures import is_nested as is_sequence
from fleet_mpi.program.structures import map_structure
from fleet_mpi.program.structures import pack_like as pack_sequence_as

__getattr__ = _missing_name("paddle.fluid.layers.utils", globals())
