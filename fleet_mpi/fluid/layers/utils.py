"""``fluid.layers.utils``: nested structures of variables, and sizes given once for all dimensions."""

from fleet_mpi.errors import UsageError as _UsageError
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.structures import flatten
from fleet_mpi.program.graph.structures import is_nested as is_sequence
from fleet_mpi.program.graph.structures import map_structure
from fleet_mpi.program.graph.structures import pack_like as pack_sequence_as
from fleet_mpi.program.graph.structures import require_alike as assert_same_structure


def convert_to_list(value, n, name, dtype=int):
    """``n`` numbers of a type: one given is repeated, a list must have ``n``."""
    values = [value] * n if isinstance(value, dtype) else list(value) if isinstance(value, (list, tuple)) else []
    if len(values) != n or not all(isinstance(one, dtype) for one in values):
        raise _UsageError(f"{name}: expected one {dtype.__name__} or a list of {n}, got {value!r}")
    return values


__getattr__ = _missing_name("paddle.fluid.layers.utils", globals())
