"""``paddle.distributed.fleet.meta_optimizers.meta_optimizer_base``: known by name only."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.distributed.fleet.meta_optimizers.meta_optimizer_base", globals(), refused={
    "MetaOptimizerBase": "strategies are applied by fleet.distributed_optimizer(optimizer, strategy); wrap an "
                         "optimizer with a class of fluid.optimizer instead"})
