"""``fluid.transpiler``: a training program split into the programs of a job."""

import fleet_mpi.runtime.ops.collective as _collective_ops  # noqa: F401  (enters the ops of programs without servers)
import fleet_mpi.runtime.ops.strategies as _collective_strategies  # noqa: F401  (likewise)
import fleet_mpi.runtime.ops.parameter_server as _distributed_ops  # noqa: F401  (enters the ops that transpiled programs have)
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.transpiler import details, distribute_transpiler, ps_dispatcher
from fleet_mpi.fluid.transpiler.ps_dispatcher import HashName, RoundRobin
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspiler, DistributeTranspilerConfig


def memory_optimize(input_program, skip_opt_set=None, print_log=False, level=0, skip_grads=True):
    """Nothing: temporaries share memory in any case."""


def release_memory(input_program, skip_opt_set=None):
    """Nothing: temporaries share memory in any case."""


__getattr__ = _missing_name("paddle.fluid.transpiler", globals(), {
    "InferenceTranspiler": "fleet_mpi.fluid.transpiler.inference_transpiler:InferenceTranspiler",
    "GeoSgdTranspiler": "fleet_mpi.transpile.distribute_transpiler:GeoSgdTranspiler",
    **{name: f"fleet_mpi.fluid.transpiler.{name}" for name in (
        "collective", "geo_sgd_transpiler", "inference_transpiler", "memory_optimization_transpiler")}})
