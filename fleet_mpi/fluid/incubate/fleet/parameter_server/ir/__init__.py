"""``fluid.incubate.fleet.parameter_server.ir``: the original's passes over programs, which ``transpile`` replaces
here."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.ir", globals(), {
    name: f"fleet_mpi.fluid.incubate.fleet.parameter_server.ir.{name}" for name in ("pserver_pass",)})
