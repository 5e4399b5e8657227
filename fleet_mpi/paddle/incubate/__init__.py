"""``paddle.incubate``: optimizers that wrap others, and the fleet of 1.x under its latest name."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.incubate", globals(), {
    "distributed": "fleet_mpi.paddle.incubate.distributed", "optimizer": "fleet_mpi.paddle.incubate.optimizer",
    "fleet": "fleet_mpi.fluid.incubate.fleet", "data_generator": "fleet_mpi.fluid.incubate.data_generator",
    "checkpoint": "fleet_mpi.fluid.incubate.checkpoint",
    "LookAhead": "fleet_mpi.program.optimizers.wrappers:LookaheadOptimizer",
    "ModelAverage": "fleet_mpi.program.optimizers.averages:ModelAverage"})
