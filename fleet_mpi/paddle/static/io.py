"""``paddle.static.io``: saving and loading of static programs, under the address some scripts use."""

from fleet_mpi.checkpoint.models.model_files import load, save
from fleet_mpi.checkpoint.models.serialized import (
    deserialize_persistables,
    deserialize_program,
    load_from_file,
    normalize_program,
    save_to_file,
    serialize_persistables,
    serialize_program,
)
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.static.inference_model import load_inference_model, save_inference_model

__getattr__ = _missing_name("paddle.static.io", globals(), {
    "load_program_state": "fleet_mpi.checkpoint.models.program_state:load_program_state",
    "set_program_state": "fleet_mpi.checkpoint.models.program_state:set_program_state",
    "load_vars": "fleet_mpi.fluid.io:load_vars", "save_vars": "fleet_mpi.fluid.io:save_vars"})
