"""``fluid.trainer_factory``: what watches a training over a dataset; trainers of C++ are known by name only."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.dataset_loop import FetchHandler

__getattr__ = _missing_name("paddle.fluid.trainer_factory", globals(), refused=dict.fromkeys(
    ("TrainerFactory", "FetchHandlerMonitor"),
    "there are no trainers to make; give exe.train_from_dataset the dataset and, as fetch_handler, a FetchHandler"))
