"""``fluid.incubate.fleet.parameter_server.version``: which parameter-server fleet this is."""

from fleet_mpi.errors import missing_name as _missing_name


def is_transpiler():
    """True: the fleet of this package transpiles programs."""
    return True


__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.version", globals())
