"""``paddle.distributed``: fleet of 2.x, its datasets, and who this process is."""

from fleet_mpi.data.distributed_datasets import InMemoryDataset, QueueDataset
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.entries import CountFilterEntry, ProbabilityEntry, ShowClickEntry
from fleet_mpi.fleet.parallel_env import ParallelEnv, barrier, get_rank, get_world_size, init_parallel_env
from fleet_mpi.paddle.distributed import fleet

__getattr__ = _missing_name("paddle.distributed", globals(), {
    "transpiler": "fleet_mpi.fluid.transpiler", "io": "fleet_mpi.paddle.distributed.io",
    "fs_wrapper": "fleet_mpi.paddle.distributed.fs_wrapper",
    "utils": "fleet_mpi.fluid.refused_modules:distributed_utils"}, dict.fromkeys(
        ("all_reduce", "all_gather", "broadcast", "reduce", "scatter", "spawn", "send", "recv", "new_group", "split"),
        "eager tensors are not built; take fleet.util.all_reduce and all_gather for arrays, or the layers of "
        "fluid.layers.collective in a program"))
