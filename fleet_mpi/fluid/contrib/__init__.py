"""``fluid.contrib``: mixed precision, sparse embeddings, layers of click models, memory estimates."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.contrib import layers, mixed_precision, utils
from fleet_mpi.program.engine.memory_usage import memory_usage

__getattr__ = _missing_name("paddle.fluid.contrib", globals(), {
    **{name: f"fleet_mpi.fluid.contrib.{name}" for name in (
        "decoder", "extend_optimizer", "memory_usage_calc", "model_stat", "op_frequence", "optimizer", "reader")},
    **dict.fromkeys(("InitState", "StateCell", "TrainingDecoder", "BeamSearchDecoder"),
                    "fleet_mpi.fluid.contrib.decoder"),
    **dict.fromkeys(("fused_embedding_seq_pool", "match_matrix_tensor", "partial_concat", "partial_sum",
                     "rank_attention", "search_pyramid_hash", "sequence_topk_avg_pooling", "shuffle_batch", "tdm_child",
                     "tdm_sampler", "tree_conv", "var_conv_2d"), "fleet_mpi.fluid.contrib.layers"),
    "op_freq_statistic": "fleet_mpi.fluid.contrib.op_frequence",
    "distributed_batch_reader": "fleet_mpi.fluid.contrib.reader",
    "extend_with_decoupled_weight_decay": "fleet_mpi.fluid.contrib.extend_optimizer",
    "summary": "fleet_mpi.fluid.contrib.model_stat",
    "slim": "fleet_mpi.fluid.contrib.slim", "QuantizeTranspiler": "fleet_mpi.fluid.contrib.slim"})
