"""``paddle.static``: programs, executors and what belongs to them, under the names of 2.x."""

from fleet_mpi.checkpoint.models.model_files import load, save
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.core import Scope
from fleet_mpi.fluid.framework import (Program, Variable, cpu_places, cuda_places, default_main_program,
                                       default_startup_program, device_guard, name_scope, program_guard)
from fleet_mpi.paddle.static import nn
from fleet_mpi.paddle.static.inference_model import load_inference_model, save_inference_model
from fleet_mpi.program.build.backward import append_backward, gradients
from fleet_mpi.program.engine.compiled import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers.data import static_data as _static_data
from fleet_mpi.program.layers.host_calls import Print, py_func
from fleet_mpi.program.layers.metric import accuracy, auc
from fleet_mpi.program.layers.tensor import create_global_var, create_parameter
from fleet_mpi.program.optimizers.averages import ExponentialMovingAverage
from fleet_mpi.program.engine.scope import global_scope, scope_guard


def data(name, shape, dtype=None, lod_level=0):
    """A variable to feed, in just this shape (None or -1: any size); float32 unless told otherwise."""
    return _static_data(name, shape, dtype or "float32", lod_level)


__getattr__ = _missing_name("paddle.static", globals(), {
    "InputSpec": "fleet_mpi.program.layers.input_spec",
    "WeightNormParamAttr": "fleet_mpi.program.build.weight_norm:WeightNormParamAttr",
    "exponential_decay": "fleet_mpi.program.build.schedules:exponential_decay",
    "ctr_metric_bundle": "fleet_mpi.program.layers.metric_bundle",
    **{name: f"fleet_mpi.checkpoint.models.program_state:{name}"
       for name in ("load_program_state", "set_program_state")},
    **{name: f"fleet_mpi.fluid.io:{name}" for name in ("load_vars", "save_vars")},
    **{name: f"fleet_mpi.paddle.static.io:{name}" for name in (
        "deserialize_persistables", "deserialize_program", "load_from_file", "normalize_program", "save_to_file",
        "serialize_persistables", "serialize_program")},
    **{name: f"fleet_mpi.paddle.static.{name}" for name in ("amp", "io")}},
    {"xpu_places": "such devices are not built; take cpu_places or cuda_places"})
