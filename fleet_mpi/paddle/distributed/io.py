"""``paddle.distributed.io``: what a job has trained, to and from folders."""

from fleet_mpi.checkpoint.loading import load_persistables
from fleet_mpi.checkpoint.saving import save_persistables
from fleet_mpi.checkpoint.variables import is_persistable
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.distributed.io", globals(), {
    "load_inference_model_distributed": "fleet_mpi.checkpoint.models.inference_model:load_inference_model"})
