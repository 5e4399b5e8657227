"""``fluid.transpiler.collective``: programs of workers without servers, which ``fleet`` and the transpiler make."""

from fleet_mpi.errors import missing_name as _missing_name

_REMEDY = ("programs of equal workers are made by fleet.distributed_optimizer(...).minimize, or by a "
           "DistributeTranspiler with config.mode = 'nccl2' or 'collective'")

__getattr__ = _missing_name("paddle.fluid.transpiler.collective", globals(), refused=dict.fromkeys(
    ("Collective", "GradAllReduce", "LocalSGD", "SingleProcessMultiThread", "MultiThread"), _REMEDY))
