"""``fluid.input``: embeddings and one-hot rows of ids that have no last dimension of 1."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.embedding import embedding_v2 as embedding
from fleet_mpi.program.layers.manipulation import one_hot_v2 as one_hot

__getattr__ = _missing_name("paddle.fluid.input", globals())
