"""``fluid.transpiler.ps_dispatcher``: the split methods, and the base class for one's own."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.placement.dispatch import HashName, PSDispatcher, RoundRobin

__getattr__ = _missing_name("paddle.fluid.transpiler.ps_dispatcher", globals())
