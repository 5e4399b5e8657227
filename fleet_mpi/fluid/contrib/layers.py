"""``fluid.contrib.layers``: embeddings whose rows live on servers."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.click import fused_embedding_seq_pool, partial_concat, partial_sum, shuffle_batch
from fleet_mpi.program.layers.embedding import sparse_embedding
from fleet_mpi.program.layers.metric_bundle import ctr_metric_bundle

__getattr__ = _missing_name("paddle.fluid.contrib.layers", globals())
