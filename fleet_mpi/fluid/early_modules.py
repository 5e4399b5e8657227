"""Modules of early versions, known by name only: high-level trainers, recordio files, downpour's own fleet, drawings.

One module stands for all of them (see ``standing_in.ELSEWHERE``).
"""

import sys as _sys

from fleet_mpi.errors import missing_name as _missing_name

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE
_module = downpour = fleet = helper = node = ps_instance = _sys.modules[__name__]

_HIGH_LEVEL = "the high-level API was gone before 1.6; build a program and run it with an Executor"
_DOWNPOUR = "it was gone before 1.8; the fleets are in fluid.incubate.fleet, the one with tables in its " \
            "parameter_server.pslib"
_REFUSED = {
    **dict.fromkeys(("Trainer", "Inferencer", "CheckpointConfig", "BeginEpochEvent", "EndEpochEvent", "BeginStepEvent",
                     "EndStepEvent", "check_and_get_place", "save_checkpoint", "load_checkpoint"), _HIGH_LEVEL),
    **dict.fromkeys(("convert_reader_to_recordio_file", "convert_reader_to_recordio_files"),
                    "recordio was gone before 1.6; read the samples with a DataLoader"),
    **dict.fromkeys(("DownpourSGD", "DownpourServer", "DownpourWorker", "PaddlePSInstance", "FileSystem", "MPIHelper",
                     "Fleet",
                     "Server", "Worker", "DistributedAdam", "DistributedOptimizerImplBase"), _DOWNPOUR),
    **dict.fromkeys(("Graph", "Node", "Edge", "GraphPreviewGenerator", "draw_graph", "draw_node", "draw_edge"),
                    "take fluid.debugger.draw_block_graphviz(block, path=...) and Graphviz's dot"),
    **dict.fromkeys(("Calibrator", "convert_dist_to_sparse_program", "load_persistables_for_increment",
                     "load_persistables_for_inference", "get_inference_model"),
                    "it is not built; fleet.save_persistables and save_inference_model write whole variables, ready to "
                    "load"),
    **dict.fromkeys(("Operator", "OperatorFactory", "OpDescCreationMethod", "get_all_op_protos"),
                    "ops do not run by themselves; add them with block.append_op and run the program"),
    "extend_with_decoupled_weight_decay": "take fluid.optimizer.AdamW, whose weight decay is decoupled",
    "summary": "it is not built; program.to_string() and contrib.memory_usage tell what a program holds",
    "VarsDistributed": "of the original's inner workings; transpiler.get_pserver_program shows what each server keeps"}

__getattr__ = _missing_name("paddle.fluid.early_modules", globals(), refused=_REFUSED)
