"""Modules of the original that are known by name only: they can be imported, and refuse the first use of their names.

Of every version: early trainers and files, downpour's own fleet, drawings; of 2.x eager mode's and deployment's.
The table has them by path below ``paddle``; here they lie flat, ``fluid.net_drawer`` as ``fluid_net_drawer``.
"""

import importlib.machinery as _machinery
import sys as _sys
import types as _types

from fleet_mpi.errors import missing_name as _missing_name

_EAGER = "there is no eager mode; build a static program and run it with an Executor"
_HIGH_LEVEL = "this API was gone before 1.6; take paddle.Model, or build a program and run it with an Executor"
_DOWNPOUR = ("it was gone before 1.8; the fleets are in fluid.incubate.fleet, the one with tables in its "
             "parameter_server.pslib")
_DRAWING = "take fluid.debugger.draw_block_graphviz(block, path=...) and Graphviz's dot"
_PREDICTOR = "take paddle.static.load_inference_model and an Executor, or fluid.core.create_paddle_predictor"
_WHOLE = "it is not built; fleet.save_persistables and save_inference_model write whole variables, ready to load"
_LAUNCHER = "ranks are started by mpirun, srun or python -m paddle.distributed.launch; take fleet for who is there"
_TRAINER = ("Trainer CheckpointConfig BeginEpochEvent EndEpochEvent BeginStepEvent EndStepEvent check_and_get_place "
            "save_checkpoint load_checkpoint")

# {path: (names, sentence)}
TABLE = {
    "amp": ("auto_cast GradScaler", f"{_EAGER}, with paddle.static.amp.decorate(optimizer) for float16"),
    "autograd": ("backward grad PyLayer PyLayerContext", _EAGER),
    "complex": ("matmul kron trace sum reshape transpose elementwise_add elementwise_sub elementwise_mul "
                "elementwise_div",
                "complex numbers are not built; keep the two parts in variables of their own"),
    "distributed.utils": ("get_cluster get_cluster_from_args find_free_ports start_local_trainers watch_local_trainers "
                          "terminate_local_procs pull_worker_log add_arguments Cluster Pod Trainer TrainerProc "
                          "JobServer Hdfs get_host_name_ip get_logger", _LAUNCHER),
    "fluid.contrib.inferencer": ("Inferencer", _HIGH_LEVEL),
    "fluid.contrib.int8_inference": ("Calibrator", _WHOLE),
    "fluid.contrib.trainer": (_TRAINER, _HIGH_LEVEL),
    "fluid.contrib.utils.lookup_table_utils": (
        "convert_dist_to_sparse_program load_persistables_for_increment load_persistables_for_inference "
        "get_inference_model", _WHOLE),
    "fluid.distributed": ("DownpourSGD DownpourServer DownpourWorker PaddlePSInstance FileSystem MPIHelper Fleet "
                          "Server Worker DistributedAdam DistributedOptimizerImplBase", _DOWNPOUR),
    "fluid.distributed.downpour": ("DownpourSGD", _DOWNPOUR),
    "fluid.distributed.fleet": ("Fleet", _DOWNPOUR),
    "fluid.distributed.helper": ("FileSystem MPIHelper", _DOWNPOUR),
    "fluid.distributed.node": ("Server Worker DownpourServer DownpourWorker", _DOWNPOUR),
    "fluid.distributed.ps_instance": ("PaddlePSInstance", _DOWNPOUR),
    "fluid.generator": ("Generator", "random numbers follow from paddle.seed(seed) or program.random_seed"),
    "fluid.graphviz": ("Graph Node Edge GraphPreviewGenerator", _DRAWING),
    "fluid.inferencer": ("Inferencer", _HIGH_LEVEL),
    "fluid.ir": ("RegisterPass PassDesc register_pass apply_build_strategy",
                 "programs are rewritten by fleet and the transpilers, plans are fused by the Executor; there are no "
                 "passes to add"),
    "fluid.memory_analysis": ("pre_allocate_memory get_max_memory_info",
                              "fluid.contrib.memory_usage(program, batch_size) estimates what a program needs"),
    "fluid.multiprocess_utils": ("CleanupFuncRegistrar MP_STATUS_CHECK_INTERVAL",
                                 "loaders' worker processes are programs of their own, and end with the loader"),
    "fluid.net_drawer": ("draw_graph draw_node draw_edge parse_graph", _DRAWING),
    "fluid.op": ("Operator OperatorFactory OpDescCreationMethod get_all_op_protos",
                 "ops do not run by themselves; add them with block.append_op and run the program"),
    "fluid.proto": ("framework_pb2 data_feed_pb2", "programs are no protobuf messages; Program.parse_from_string reads "
                                                   "them, fluid.DataFeedDesc a feed's description"),
    "fluid.recordio_writer": ("convert_reader_to_recordio_file convert_reader_to_recordio_files",
                              "recordio was gone before 1.6; read the samples with a DataLoader"),
    "fluid.trainer": (_TRAINER, _HIGH_LEVEL),
    "fluid.transpiler.details.vars_distributed": (
        "VarsDistributed", "of the original's inner workings; transpiler.get_pserver_program shows what each server "
                           "keeps"),
    "hub": ("help list load", "models are not fetched from the network; paddle.static.load_inference_model and "
                              "paddle.load read those that are here"),
    "inference": ("Config create_predictor Predictor PredictorPool DataType PlaceType PrecisionType", _PREDICTOR),
    "onnx": ("export", "layers have no eager mode to be exported from; save the static program by "
                       "paddle.static.save_inference_model(path, feeds, fetches, exe), then python -m fleet_mpi export "
                       "path --to onnx"),
    "utils.cpp_extension": ("CppExtension CUDAExtension BuildExtension setup load get_build_directory",
                            "ops are not loaded from C++ libraries; write a paddle.static.py_func"),
}
for _file, _names in (("framework_pb2", "ProgramDesc BlockDesc OpDesc VarDesc VarType OpProto AttrType"),
                      ("data_feed_pb2", "DataFeedDesc MultiSlotDesc Slot")):
    TABLE[f"fluid.proto.{_file}"] = (_names, TABLE["fluid.proto"][1])

__path__ = []


def flat(path):
    """The name here of the module with this path."""
    return path.replace(".", "_")


def _make(path):
    """Enter the module into this one and into ``sys.modules``; what is below it is found by its own path."""
    names, sentence = TABLE[path]
    made = _types.ModuleType(f"{__name__}.{flat(path)}", f"``paddle.{path}``, known by name only: {sentence}.")
    made.__spec__ = _machinery.ModuleSpec(made.__name__, None, is_package=True)
    made.__path__ = []
    made.__getattr__ = _missing_name(f"paddle.{path}", vars(made), {
        below.rpartition(".")[2]: f"{__name__}:{flat(below)}" for below in TABLE if below.rpartition(".")[0] == path},
        dict.fromkeys(names.split(), sentence))
    globals()[flat(path)] = _sys.modules[made.__name__] = made


for _path in TABLE:
    _make(_path)
