"""The ops by which a program meets other ranks.

    parameter_server    send, recv and listen_and_serv
    lookup              rows of tables that servers keep
    collective          sums of gradients over all workers
    strategies          local SGD, deep compression, batch norm over all workers
    combining           ``fluid.layers.collective``
"""

from fleet_mpi.runtime.ops import collective, combining, lookup, parameter_server, strategies

__all__ = ["collective", "combining", "lookup", "parameter_server", "strategies"]
