"""What scripts may set or call and nothing follows from: one table, by owner.

Such names are taken (and checked where they have a type) so that scripts run unchanged; docs/reference lists them.
What would change results but is not built is refused instead, and is not here.
"""

from fleet_mpi.fleet.collective_strategy import DistributedStrategy as _Collective
from fleet_mpi.fleet.strategy import CONFIGS as _CONFIGS, SWITCHES as _SWITCHES
from fleet_mpi.program.engine.compiled import BuildStrategy as _BuildStrategy, ExecutionStrategy as _ExecutionStrategy
from fleet_mpi.transpile.distribute_transpiler import DEFAULTS as _TRANSPILER

# What ``fleet.application``, ``fleet.job`` and ``fleet.collective_job`` act on, and what is refused.
ACTED_ON = {"a_sync", "a_sync_configs", "amp", "amp_configs", "recompute", "recompute_configs", "gradient_merge",
            "gradient_merge_configs", "lars", "lars_configs", "lamb", "lamb_configs", "localsgd", "localsgd_configs",
            "adaptive_localsgd", "adaptive_localsgd_configs", "dgc", "dgc_configs", "fp16_allreduce", "sync_batch_norm",
            "fuse_all_reduce_ops", "fuse_grad_size_in_MB", "last_comm_group_size_MB", "nccl_comm_num",
            "use_hierarchical_allreduce", "hierarchical_allreduce_inter_nranks", "gradient_scale_configs",
            "hybrid_configs"}
REFUSED = {"pipeline", "sharding", "tensor_parallel", "elastic", "auto", "semi_auto", "auto_search", "asp", "qat",
           "heter_ccl_mode", "is_fl_ps_mode", "with_coordinator", "adam_d2sum"}
TRANSPILER_ACTED_ON = {"mode", "sync_mode", "half_async", "completely_not_async", "runtime_split_send_recv",
                       "geo_sgd_mode", "geo_sgd_need_push_nums", "enable_dc_asgd", "dc_asgd_lambda", "dc_asgd_adaptive",
                       "dc_asgd_bound", "staleness", "slice_var_up", "split_method", "min_block_size", "print_log"}
COLLECTIVE_ACTED_ON = {"forward_recompute", "recompute_checkpoints", "use_amp", "amp_loss_scaling", "use_dist_fc",
                       "mode",
                       "collective_mode", "use_local_sgd"}
# Of the strategy that a collective job is given; other programs are compiled without them.
BUILD_ACTED_ON = {"sync_batch_norm", "nccl_comm_num", "gradient_scale_strategy"}

TABLE = {
    "paddle.distributed.fleet.DistributedStrategy": sorted(
        {*_SWITCHES, *_CONFIGS, "execution_strategy"} - ACTED_ON - REFUSED),
    "fluid.incubate.fleet.collective.DistributedStrategy": sorted(
        set(_Collective.defaults) - set(_BuildStrategy.defaults) - COLLECTIVE_ACTED_ON),
    "fluid.BuildStrategy": sorted(set(_BuildStrategy.defaults) - BUILD_ACTED_ON),
    "fluid.ExecutionStrategy": sorted({*_ExecutionStrategy.defaults} - {"num_iteration_per_run"}),
    "fluid.DistributeTranspilerConfig": sorted(set(_TRANSPILER) - TRANSPILER_ACTED_ON),
    "role makers, fleet": ["GeneralRoleMaker(**kwargs)", "pslib's strategy dictionary",
                           "_set_client_communication_config", "pslib's fleet_embedding(click_name)",
                           "DistributedStrategy.set_debug_opt (1.x, 2.x)", "Communicator.init_with_ctx"],
    "Executor": ["feed_var_name", "fetch_var_name", "use_program_cache", "return_merged", "use_prune",
                 "train_from_dataset(thread, debug)"],
    "with_data_parallel, ParallelExecutor": ["loss_name", "share_vars_from", "places", "num_trainers", "trainer_id"],
    "layers": ["use_cudnn", "force_cpu", "batch_norm(in_place, fuse_with_relu)", "reshape(inplace)",
               "is_distributed (where the height binds)", "sparse_embedding(entry) in one process", "memory_optimize",
               "release_memory", "init_on_cpu", "device_guard",
               "InferenceTranspiler.transpile", "no_grad"],
    "loaders and data": ["use_double_buffer", "use_multiprocess", "double_buffer", "set_hdfs_config",
                         "paddle.io.DataLoader(places, use_buffer_reader, use_shared_memory, persistent_workers)",
                         "set_feed_type", "set_date", "set_generate_unique_feasigns"],
    "mixed precision, optimizers": ["use_pure_fp16", "use_fp16_guard", "amp_init", "multi_precision"],
    "paddle": ["paddle.enable_static", "paddle.v2.init", "FLAGS_* that mean nothing here (said once)"],
}
