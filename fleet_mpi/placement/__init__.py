"""Where each row lives: how variables are cut into shards and which server keeps each one.

    shard       the records: Variable and Shard
    variables   the arguments of ``place``, checked
    split       the rule that cuts variables into blocks of rows
    dispatch    which server gets a block: RoundRobin, HashName, Balanced
    hashing     a hash of names that all processes agree on
    placing     place: all shards of all variables on all servers
    plan        the shard table as data and as text

Knows nothing of MPI, of programs or of arrays' contents: names, shapes and counts go in, a table of shards comes out.
"""

from fleet_mpi.placement.dispatch import Balanced, HashName, PSDispatcher, RoundRobin
from fleet_mpi.placement.placing import Placement, place
from fleet_mpi.placement.shard import Shard, Variable

__all__ = ["Balanced", "HashName", "PSDispatcher", "Placement", "RoundRobin", "Shard", "Variable", "place"]
