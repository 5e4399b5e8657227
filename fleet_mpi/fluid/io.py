"""``fluid.io``: saving and loading, loaders, and the reader decorators."""

from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.checkpoint.models.model_files import load, save
from fleet_mpi.checkpoint.loading import load_params, load_persistables, load_vars
from fleet_mpi.checkpoint.saving import save_inference_model, save_params, save_persistables, save_vars
from fleet_mpi.checkpoint.variables import is_parameter, is_persistable
from fleet_mpi.data.loader import PyReader
from fleet_mpi.data.readers import (ComposeNotAligned, batch, buffered, cache, chain, compose, firstn, map_readers,
                                    multiprocess_reader, shuffle, xmap_readers)
from fleet_mpi.errors import missing_name as _missing_name


def get_program_parameter(program):
    """The parameters of a program."""
    return program.all_parameters()


def get_program_persistable_vars(program):
    """What a checkpoint of a program holds."""
    return [var for var in program.list_vars() if is_persistable(var)]


__getattr__ = _missing_name("paddle.fluid.io", globals(), {
    "DataLoader": "fleet_mpi.data.data_loader:FluidDataLoader",
    "get_parameter_value": "fleet_mpi.checkpoint.models.program_state:parameter_value",
    "get_parameter_value_by_name": "fleet_mpi.checkpoint.models.program_state:parameter_value_by_name",
    **dict.fromkeys(("prepend_feed_ops", "append_fetch_ops"), "fleet_mpi.program.build.feed_fetch"),
    **{name: f"fleet_mpi.checkpoint.models.program_state:{name}"
       for name in ("load_program_state", "set_program_state")}})
