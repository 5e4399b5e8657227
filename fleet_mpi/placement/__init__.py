"""Where each row lives: how variables are cut into shards and which server keeps each one.

Knows nothing of MPI, of programs or of arrays' contents: names, shapes and counts go in, a table of shards comes out.
"""

from fleet_mpi.placement.dispatch import Balanced, HashName, PSDispatcher, RoundRobin
from fleet_mpi.placement.placing import Placement, place
from fleet_mpi.placement.shard import Shard, Variable

__all__ = ["Balanced", "HashName", "PSDispatcher", "Placement", "RoundRobin", "Shard", "Variable", "place"]
