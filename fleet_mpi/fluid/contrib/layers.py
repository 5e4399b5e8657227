"""``fluid.contrib.layers``: embeddings whose rows live on servers, and what click models add to the layers."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.embedding import sparse_embedding

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

_LATE = {"ctr_metric_bundle": "fleet_mpi.program.layers.metric_bundle",
         **dict.fromkeys(("fused_embedding_seq_pool", "partial_concat", "partial_sum", "rank_attention",
                          "shuffle_batch"), "fleet_mpi.program.layers.click"),
         **dict.fromkeys(("match_matrix_tensor", "sequence_topk_avg_pooling", "var_conv_2d"),
                         "fleet_mpi.program.layers.matching"),
         **dict.fromkeys(("tdm_child", "tdm_sampler"), "fleet_mpi.program.layers.tree_nodes"),
         "tree_conv": "fleet_mpi.program.layers.tree_convolution",
         **dict.fromkeys(("basic_gru", "basic_lstm"), "fleet_mpi.program.layers.stacked_rnn"),
         **dict.fromkeys(("BasicGRUUnit", "BasicLSTMUnit"), "fleet_mpi.program.layers.recurrent_units")}
_REFUSED = {
    "search_pyramid_hash": "hashed n-grams whose table trains itself are not built; hash and an embedding are"}

__getattr__ = _missing_name("paddle.fluid.contrib.layers", globals(), _LATE, _REFUSED)
