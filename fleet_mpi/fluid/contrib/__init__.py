"""``fluid.contrib``: mixed precision, sparse embeddings, memory estimates."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.contrib import layers, mixed_precision, utils
from fleet_mpi.program.memory_usage import memory_usage

__getattr__ = _missing_name("paddle.fluid.contrib", globals(), {
    "slim": "fleet_mpi.fluid.contrib.slim", "QuantizeTranspiler": "fleet_mpi.fluid.contrib.slim"})
