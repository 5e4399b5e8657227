"""``paddle.distributed.fleet.meta_optimizers.sharding.utils``: saving."""

from fleet_mpi.checkpoint import saving as _saving
from fleet_mpi.errors import missing_name as _missing_name


def save_persistables(exe, dirname, main_program, filename=None):
    """Save parameters and optimizer state."""
    _saving.save_persistables(exe, dirname, main_program, filename)


__getattr__ = _missing_name("paddle.distributed.fleet.meta_optimizers.sharding.utils", globals(), refused=dict.fromkeys(
    ("add_sync_comm", "comm_analyse", "check_broadcast", "check_allreduce_sum", "get_valid_op_role"),
    "sharding over devices is not built; train data-parallel"))
