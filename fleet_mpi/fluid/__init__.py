"""``paddle.fluid``: the names of the 1.x API, each bound to what does the work in this package.

Imports, aliases and signature adapters only. A name that is not here is refused with the nearest that is.
"""

from fleet_mpi.ranks import cluster as _cluster
from fleet_mpi.checkpoint.models.model_files import load, save
from fleet_mpi.data.dataset import DatasetFactory
from fleet_mpi.data.feeder import DataFeeder
from fleet_mpi.data.loader import PyReader
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import (backward, clip, compiler, contrib, core, data_feeder, dataset, executor, framework,
                             initializer, io, layer_helper, layers, lod_tensor, metrics, nets, optimizer, param_attr,
                             reader, regularizer, transpiler, unique_name)
from fleet_mpi.fluid.core import CPUPlace, CUDAPinnedPlace, CUDAPlace, LoDTensor, LoDTensorArray, Scope, Tensor
from fleet_mpi.fluid.framework import (Program, Variable, cpu_places, cuda_places, default_main_program,
                                       default_startup_program, device_guard, get_flags, in_dygraph_mode,
                                       is_compiled_with_cuda, name_scope, program_guard, require_version, set_flags)
from fleet_mpi.fluid.transpiler import (DistributeTranspiler, DistributeTranspilerConfig, HashName, RoundRobin,
                                        memory_optimize, release_memory)
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.compiled import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.layers.data import static_data as data
from fleet_mpi.program.layers.embedding import embedding_v2 as embedding
from fleet_mpi.program.layers.manipulation import one_hot_v2 as one_hot
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.scope import create_lod_tensor, global_scope, scope_guard

_cluster.guard_if_launched()

# Not imported with the rest: few scripts use them.
__getattr__ = _missing_name("paddle.fluid", globals(), {
    "DataLoader": "fleet_mpi.data.data_loader:FluidDataLoader",
    "InferenceTranspiler": "fleet_mpi.fluid.transpiler.inference_transpiler:InferenceTranspiler",
    "DataFeedDesc": "fleet_mpi.fluid.data_feed_desc:DataFeedDesc", "XPUPlace": "fleet_mpi.fluid.core:XPUPlace",
    "WeightNormParamAttr": "fleet_mpi.program.build.weight_norm:WeightNormParamAttr",
    "create_random_int_lodtensor": "fleet_mpi.fluid.lod_tensor:create_random_int_lodtensor",
    "cuda_pinned_places": "fleet_mpi.program.engine.places:cuda_pinned_places",
    **{name: f"fleet_mpi.fluid.dygraph:{name}" for name in ("enable_dygraph", "disable_dygraph")},
    **{name: f"fleet_mpi.checkpoint.models.program_state:{name}"
       for name in ("load_program_state", "set_program_state")},
    **{name: f"fleet_mpi.fluid.{name}" for name in (
        "annotations", "average", "communicator", "data_feed_desc", "debugger", "default_scope_funcs", "device_worker",
        "distribute_lookup_table", "dygraph", "entry_attr", "evaluator", "incubate", "input", "install_check",
        "layer_helper_base", "log_helper", "parallel_executor", "profiler", "trainer_desc", "trainer_factory",
        "wrapped_decorator")},
    **{name: f"fleet_mpi.fluid.refused_modules:fluid_{name}" for name in (
        "distributed", "generator", "graphviz", "inferencer", "ir", "net_drawer", "proto", "recordio_writer")}}, {
    "load_op_library": "ops are not loaded from C++ libraries; write a py_func",
    "AsyncExecutor": "it was gone before 1.6; take exe.train_from_dataset"})
