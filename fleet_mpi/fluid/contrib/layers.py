"""``fluid.contrib.layers``: embeddings whose rows live on servers."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.embedding import sparse_embedding

__getattr__ = _missing_name("paddle.fluid.contrib.layers", globals())
