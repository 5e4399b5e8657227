"""``fluid.entry_attr``: when a row of a table on servers comes to be."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.entries import CountFilterEntry, ProbabilityEntry, ShowClickEntry

__getattr__ = _missing_name("paddle.fluid.entry_attr", globals())
