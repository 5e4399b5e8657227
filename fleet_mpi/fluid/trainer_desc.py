"""``fluid.trainer_desc``: descriptions of C++ trainers, known by name only."""

from fleet_mpi.errors import missing_name as _missing_name

REFUSED = dict.fromkeys(
    ("TrainerDesc", "MultiTrainer", "DistMultiTrainer", "PipelineTrainer", "HeterXpuTrainer", "HeterBoxWorker"),
    "an executor needs no trainer's description; exe.train_from_dataset(program, dataset) trains, with thread= ignored")

__getattr__ = _missing_name("paddle.fluid.trainer_desc", globals(), refused=REFUSED)
