"""Where the values of a program are, to be saved or loaded.

    base       the seam: Values
    scope      all in the scope of this process
    servers    on the servers of a job, and the rest in a worker's scope
    growing    tables with a row for any id, on servers and in files
    blocks     a server's own blocks, in its scope

``of_program`` says which. Knows variables and formats; folders and ranks are decided above.
"""

from fleet_mpi.checkpoint.values.base import Values
from fleet_mpi.checkpoint.values.blocks import BlockValues
from fleet_mpi.checkpoint.values.scope import ScopeValues
from fleet_mpi.checkpoint.values.servers import ServerValues, connected
from fleet_mpi.checkpoint.variables import AnyProgram, program_of
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.program.engine.scope import global_scope

__all__ = ["BlockValues", "ScopeValues", "ServerValues", "Values", "of_program"]


def of_program(main_program: AnyProgram, what: str) -> Values:
    """The values of a program in the global scope; ``what`` is the call that asks, for sentences."""
    program = program_of(main_program)
    if program._distribution is None:
        return ScopeValues(program)
    if program._server is not None:
        return BlockValues(program._distribution, program._server, global_scope())
    return ServerValues(ServerState(connected(what).client), program._distribution)
