"""``fluid.incubate.checkpoint.auto_checkpoint``: how far training is."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.collective_checkpoints import TrainStatus as ExeTrainStatus

__getattr__ = _missing_name("paddle.fluid.incubate.checkpoint.auto_checkpoint", globals(), refused=dict.fromkeys(
    ("train_epoch_range", "AutoCheckpointChecker", "TrainEpochRange"),
    "checkpoints are not made behind a script's back; call fleet.save_check_point, or use the run checkpoints of "
    "python -m fleet_mpi launch"))
