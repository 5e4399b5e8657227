"""``fluid.incubate.fleet.parameter_server``: training with servers."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.incubate.fleet.parameter_server import distribute_transpiler, pslib

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server", globals(), {
    "TranspilerOptimizer": "fleet_mpi.fleet.optimizer:TranspilerOptimizer",
    "fleet": "fleet_mpi.fleet.facade:transpiler_fleet",
    **{name: f"fleet_mpi.fluid.incubate.fleet.parameter_server.{name}" for name in ("ir", "mode", "version")}})
