"""``fluid.transpiler``: a training program split into the programs of a job."""

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
